// Fuzz targets for answers of servers and of machines in between.
import FuzzSupport
import Glibc
import Host
import StatusBoard
import Support
import Synchronization

@testable import HTTP
@testable import Upload

enum AnswerTargets {
    static let all = [
        FuzzTarget(name: "answer", run: answer), FuzzTarget(name: "bucket-answer", run: bucket),
        FuzzTarget(name: "http", run: exchange), FuzzTarget(name: "reply", run: reply),
        FuzzTarget(name: "accept-encoding", run: accepting),
    ]

    /// Splits an input into status, content type up to a line end, and body.
    private static func parsed(_ input: [UInt8]) -> Answer? {
        guard input.count >= 3 else { return nil }
        let head = input.dropFirst(3).prefix { $0 != 10 }
        var answer = Answer(
            status: Int(input[0]) | Int(input[1] & 3) << 8,
            contentType: String(decoding: head, as: UTF8.self),
            body: Array(input.dropFirst(4 + head.count)),
            retryAfter: Int(input[2]) * 100
        )
        answer.cutAt = input[1] & 4 != 0 ? answer.body.count : nil
        answer.etag = input[1] & 8 != 0 ? "etag" : ""
        answer.region = answer.contentType
        answer.location = answer.contentType
        return answer
    }

    private static func check(_ verdict: Verdict) {
        switch verdict {
        case .accepted: return
        case .stopped, .held: preconditionFailure("no verdict on an answer")
        case .retry(let failure, let after), .inProgress(let failure, let after),
            .streamHeld(let failure, let after):
            precondition(failure.message.utf8.count < 2000)
            precondition(after ?? .zero <= .seconds(3600))
        case .unreachable(let failure), .tokenRefused(let failure), .endpointWrong(let failure):
            precondition(failure.message.utf8.count < 3000)
        case .tooLarge(let words), .refused(let words):
            precondition(words.utf8.count < 2000)
            precondition(!words.unicodeScalars.contains { $0.value < 32 })
        }
    }

    private static func answer(_ input: [UInt8]) {
        if let answer = parsed(input) { check(Verdict(answer)) }
    }

    private static func bucket(_ input: [UInt8]) {
        if let answer = parsed(input) { check(Verdict(bucket: answer)) }
    }

    /// Checks that a body parses alike in one piece and in many, and as JSONDecoder parses it.
    private static func reply(_ input: [UInt8]) {
        let whole = Reply(input)
        var scanner = ReplyScanner()
        var rest = input[...]
        while !rest.isEmpty {
            Array(rest.prefix(1 + rest.count % 7)).withUnsafeBytes { scanner.append($0) }
            rest = rest.dropFirst(1 + rest.count % 7)
        }
        precondition(scanner.reply == whole)
        precondition(whole.rejected >= 0 && whole.duplicates >= 0 && whole.accepted ?? 0 >= 0)
        // JSONDecoder also accepts other encodings than UTF-8, and ignores numbers that are not
        // decoded.
        guard !input.contains(0) else { return }
        let isJSON = FoundationJSON.decode(AnyJSON.self, from: input) != nil
        precondition(whole.form != .json || isJSON)
        guard let strict = FoundationJSON.decode(StrictJSON.self, from: input),
            FoundationJSON.isValid(input)
        else { return }
        precondition(whole.form == .json)
        precondition((whole.rejected > 0) == (strict.count("rejected") > 0))
        precondition((whole.duplicates > 0) == (strict.count("duplicates") > 0))
    }

    private static func accepting(_ input: [UInt8]) {
        var choice = CompressionChoice(.zstd)
        var changes = 0
        while choice.fallBack(accepting: String(decoding: input, as: UTF8.self)) { changes += 1 }
        precondition(changes <= 3)
    }

    /// Sends the input as the bytes of an answer, through libcurl.
    private static let server = AnswerServer()

    private static func exchange(_ input: [UInt8]) {
        server.answer(with: input)
        do {
            let transport = try Transport(server.settings)
            let request = HTTPRequest(posting: RequestBody([]), headers: [])
            switch transport.send(request, until: server.never) {
            case .answered(let answer):
                precondition(answer.body.count <= 8 << 10)
                check(Verdict(answer))
                check(Verdict(bucket: answer))
            case .failed(let failure): precondition(failure.message.utf8.count < 5000)
            case .stopped: break
            }
        } catch {
            fatalError("\(error)")
        }
    }
}

/// A loopback server that answers each request with the same bytes and hangs up.
private final class AnswerServer: Sendable {
    private let answer = Mutex<[UInt8]>([])
    let settings: TransportSettings
    let never: StopSignal

    init() {
        let (listener, port) = listening(backlog: 16)
        settings = TransportSettings(
            endpoint: "http://127.0.0.1:\(port)/api/ingest",
            timeout: .seconds(5),
            userAgent: "fuzz"
        )
        do {
            never = try StopSignal()
            // The thread ends with the process.
            _ = try OwnThread("server") { [weak self] in self?.serve(listener) }
        } catch {
            fatalError("\(error)")
        }
    }

    /// Sets the answer; a request in progress may still get the previous one.
    func answer(with bytes: [UInt8]) { answer.withLock { $0 = bytes } }

    private func serve(_ listener: Int32) {
        var request = [UInt8](repeating: 0, count: 4096)
        while case let client = accept(listener, nil, nil), client >= 0 {
            if recv(client, &request, request.count, 0) > 0 {
                let bytes = answer.withLock { $0 }
                _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            }
            shutdown(client, Int32(SHUT_WR))
            while recv(client, &request, request.count, 0) > 0 {}
            close(client)
        }
    }
}
