// One request as libcurl's callbacks see it.
internal import CCurl

/// What the callbacks of one request share; used by the uploader's thread only.
final class ExchangeContext {
    let body: any RequestBody
    var answer: [UInt8] = []
    var bodyError: (any Error)?
    /// Bytes of the body handed to libcurl.
    var given = 0
    var headerBytes = 0
    /// The answer's body was longer than what is read of it.
    var isCut = false
    var isHeaderTooLong = false
    /// The empty line behind the last header has come.
    var hasWholeHeader = false

    init(body: any RequestBody) {
        self.body = body
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> ExchangeContext? {
        context.map { Unmanaged<ExchangeContext>.fromOpaque($0).takeUnretainedValue() }
    }
}

// Plain functions: libcurl calls them, and a closure could carry an actor's isolation along.

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
        bytes.withUnsafeBytes { UnsafeMutableRawPointer(buffer).copyMemory(from: $0) }
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
    return CURL_SEEKFUNC_OK
}

func takeAnswer(
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let exchange = ExchangeContext.from(context), let buffer else { return 0 }
    // A list of ten thousand ids still fits.
    let room = max(0, (1 << 20) - exchange.answer.count)
    let bytes = UnsafeRawBufferPointer(start: buffer, count: size * count)
    exchange.answer.append(contentsOf: bytes.prefix(room))
    exchange.isCut = bytes.count > room
    // Less than was offered ends the request: an answer may be without end.
    return min(room, bytes.count)
}

func takeHeader(
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let exchange = ExchangeContext.from(context) else { return 0 }
    exchange.headerBytes += size * count
    let line = UnsafeRawBufferPointer(start: buffer, count: size * count)
    // Each of several answers (`100 Continue` first) begins anew; what follows a body are trailers.
    if line.starts(with: "HTTP/".utf8) { exchange.hasWholeHeader = false }
    if line.allSatisfy({ $0 == 13 || $0 == 10 }) { exchange.hasWholeHeader = true }
    exchange.isHeaderTooLong = exchange.headerBytes > AnswerHeader.limit
    return exchange.isHeaderTooLong ? 0 : size * count
}

extension UnsafeMutableRawPointer {
    fileprivate func copyMemory(from bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        copyMemory(from: start, byteCount: bytes.count)
    }
}
