// The state of one request, and the callbacks through which libcurl reads and writes it.
import Host
import CCurl

/// The state shared by the callbacks of one request; used by the uploader's thread only.
final class ExchangeContext {
    /// The longest answer body in bytes: from an ingest server, and from any other.
    ///
    /// A server may send a whole batch back (8 MiB by default). An answer that never ends does not
    /// confirm anything.
    static let limits = (good: 64 << 20, other: 1 << 20)
    /// Bytes of the answer kept for error messages.
    private static let kept = 8 << 10

    let body: RequestBody
    private let maxAnswer: Int?
    private(set) var answer: [UInt8] = []
    /// Bytes of the answer's body received so far.
    private(set) var answered = 0
    private var scanner = ReplyScanner()
    /// The status of the current answer; 0 before it.
    private var status = 0
    var bodyError: (any Error)?
    /// Bytes of the body handed to libcurl.
    var given = 0
    /// Bytes handed to the network, headers and bodies, over all of libcurl's own retries.
    ///
    /// Counted as they are sent: libcurl 7.88 forgets the body of one try when it begins the next.
    fileprivate(set) var sent: Int64 = 0
    private(set) var headerBytes = 0
    /// libcurl rewound the body, so it sent the body twice.
    var isRewound = false
    /// The answer's body exceeded the limit.
    private(set) var isCut = false
    private(set) var isHeaderTooLong = false
    /// The empty line after the last header has come.
    private(set) var hasWholeHeader = false

    /// `maxAnswer`: see `HTTPRequest`.
    init(body: RequestBody, maxAnswer: Int? = nil) {
        (self.body, self.maxAnswer) = (body, maxAnswer)
    }

    var reply: Reply { scanner.reply }

    /// Handles a header line.
    func receive(header line: UnsafeRawBufferPointer) {
        headerBytes += line.count
        // Each of several answers (`100 Continue` first) starts over; lines after a body are
        // trailers.
        if line.starts(with: "HTTP/".utf8) {
            hasWholeHeader = false
            let words = String(decoding: line.prefix(32), as: UTF8.self).split(separator: " ")
            status = words.dropFirst().first.flatMap { Int($0.prefix(3)) } ?? 0
        }
        if line.allSatisfy({ $0 == 13 || $0 == 10 }) { hasWholeHeader = true }
        isHeaderTooLong = headerBytes > AnswerHeader.limit
    }

    /// Handles more of the answer's body; returns false once it is too long.
    func receive(answer bytes: UnsafeRawBufferPointer) -> Bool {
        answered += bytes.count
        answer.append(contentsOf: bytes.prefix(max(0, (maxAnswer ?? Self.kept) - answer.count)))
        let isGood = (200...299).contains(status)
        // 429 says whether it is for the device or for one stream; each may offer jobs.
        if isGood || status >= 400 { scanner.append(bytes) }
        let usual = isGood && !scanner.isBroken ? Self.limits.good : Self.limits.other
        isCut = answered > maxAnswer ?? usual
        return !isCut
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> ExchangeContext? {
        context.map { Unmanaged<ExchangeContext>.fromOpaque($0).takeUnretainedValue() }
    }
}

// Plain functions, because libcurl calls them: a closure could carry an actor's isolation.

func giveBody(
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let exchange = ExchangeContext.from(context), let buffer else {
        return Int(CURL_READFUNC_ABORT)
    }
    do {
        let bytes = try exchange.body.read(atMost: size * count)
        mustHold(bytes.count <= size * count, "a piece of a body fits into the buffer")
        UnsafeMutableRawBufferPointer(start: buffer, count: bytes.count).copyBytes(from: bytes)
        exchange.given += bytes.count
        return bytes.count
    } catch {
        exchange.bodyError = error
        return Int(CURL_READFUNC_ABORT)
    }
}

func rewindBody(
    _ context: UnsafeMutableRawPointer?,
    _ offset: curl_off_t,
    _ origin: Int32
) -> Int32 {
    guard let exchange = ExchangeContext.from(context), offset == 0 else {
        return CURL_SEEKFUNC_CANTSEEK
    }
    exchange.body.rewind()
    exchange.isRewound = exchange.given > 0
    return CURL_SEEKFUNC_OK
}

func countSent(
    _ easy: UnsafeMutableRawPointer?,
    _ kind: curl_infotype,
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    if kind == CURLINFO_HEADER_OUT || kind == CURLINFO_DATA_OUT {
        ExchangeContext.from(context)?.sent += Int64(count)
    }
    return 0
}

func receiveAnswer(
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let exchange = ExchangeContext.from(context), let buffer else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: buffer, count: size * count)
    // Returning less than was offered ends the request.
    return exchange.receive(answer: bytes) ? bytes.count : 0
}

func receiveHeader(
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let exchange = ExchangeContext.from(context) else { return 0 }
    exchange.receive(header: UnsafeRawBufferPointer(start: buffer, count: size * count))
    return exchange.isHeaderTooLong ? 0 : size * count
}
