// What happens to each request: planned by its header, its body gathered, worked on aside, answered.
import Synchronization

/// What a daemon's callbacks share.
final class ServerSide: Sendable {
    private let bounds: HTTPBounds
    private let application: any HTTPApplication
    private let workers: Workers
    private let lingering: Lingering
    let connections: Connections
    /// Those that go on; nil: no more.
    private let streams = Mutex<[ObjectIdentifier: AnswerStream]?>([:])

    /// A refused body of so few bytes is read to its end, and the connection goes on.
    private static let smallBody = 64 << 10

    init(_ bounds: HTTPBounds, _ application: any HTTPApplication) throws {
        self.bounds = bounds
        self.application = application
        workers = Workers(bounds.workers)
        lingering = try Lingering(most: bounds.connections)
        connections = Connections(patience: .seconds(bounds.patience))
    }

    /// No body is worked on any more, and what goes on is ended; returns when those that were are answered.
    func finish() {
        let open = streams.withLock { streams in
            defer { streams = nil }
            return streams ?? [:]
        }
        for stream in open.values { stream.end() }
        workers.finish()
        lingering.finish()
        connections.finish()
    }

    // MARK: On the daemon's thread

    /// The header is there.
    func begin(_ exchange: Exchange) -> Bool {
        connections.stop(exchange.connection)
        switch plan(exchange) {
        case .body(let limit):
            exchange.limit = limit
            exchange.body = Spool(folder: application.spoolFolder, memory: 64 << 10)
            return true
        case .stream(let stream):
            exchange.stream = stream
            return true
        case .answer(let answer):
            let head = exchange.head
            // Answered behind the body: what is left of one would be taken for the next request.
            if !head.isChunked, head.length ?? 0 <= Self.smallBody {
                exchange.answer = answer
                return true
            }
            // Answered before it: libmicrohttpd closes the connection then.
            lingering.add(exchange.connection.socket)
            return exchange.connection.queue(answer, closing: true)
        }
    }

    private func plan(_ exchange: Exchange) -> RequestPlan {
        let head = exchange.head
        guard exchange.connection.headerSize <= bounds.header else {
            let reason = "the header is larger than \(bounds.header) bytes"
            return .answer(HTTPAnswer(Refusal(status: 431, reason: reason)))
        }
        // Two lengths: what one reader takes for the body is the next request to another.
        guard !head.isChunked || head.fields[.contentLength] == nil else {
            let reason = "Content-Length beside Transfer-Encoding"
            return .answer(HTTPAnswer(Refusal(status: 400, reason: reason)))
        }
        return application.plan(head)
    }

    /// The body is there, or the answer.
    func proceed(_ exchange: Exchange) -> Bool {
        if let answer = exchange.answer {
            // Where connections are scarce, one that waits for its client's next request is given up.
            let isCrowded = connections.count > bounds.connections / 2
            return exchange.connection.queue(answer, closing: isCrowded)
        }
        if let stream = exchange.stream { return begin(stream, exchange) }
        exchange.connection.suspend()
        let isTaken = workers.perform { [application] isTooLate in
            exchange.answer = isTooLate ? Self.stopping : application.answer(exchange)
            exchange.body = nil
            exchange.connection.resume()
        }
        exchange.isCounted = isTaken
        if !isTaken {
            exchange.answer = Self.stopping
            exchange.connection.resume()
        }
        return true
    }

    private func begin(_ stream: AnswerStream, _ exchange: Exchange) -> Bool {
        let isTaken = streams.withLock { streams in
            streams?[ObjectIdentifier(stream)] = stream
            return streams != nil
        }
        guard isTaken else { return exchange.connection.queue(Self.stopping, closing: true) }
        workers.isAnswering()
        exchange.isCounted = true
        stream.begin(exchange.connection, connections)
        return exchange.connection.queue(stream)
    }

    /// The request is over, answered or not.
    func end(_ exchange: Exchange) {
        if exchange.isCounted { workers.answered() }
        if let stream = exchange.stream {
            stream.forget()
            _ = streams.withLock { $0?.removeValue(forKey: ObjectIdentifier(stream)) }
        }
        connections.start(exchange.connection)
    }

    private static var stopping: HTTPAnswer {
        HTTPAnswer(Refusal(status: 503, reason: "the server is stopping", retryAfter: 5))
    }
}

extension HTTPApplication {
    fileprivate func answer(_ exchange: Exchange) -> HTTPAnswer? {
        exchange.body.map { answer(exchange.head, $0) }
    }
}
