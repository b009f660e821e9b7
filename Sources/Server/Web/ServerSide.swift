// The life of each request: decide by its header, spool its body, process it on a worker, answer.
import ServerBase
import Synchronization

/// The state shared by a daemon's callbacks.
final class ServerSide: Sendable {
    private let bounds: HTTPBounds
    private let application: any HTTPApplication
    private let workers: Workers
    private let lingering: Lingering
    let connections: Connections
    /// The streamed answers that are open; nil once no more are accepted.
    private let streams = Mutex<[ObjectIdentifier: AnswerStream]?>([:])

    /// The requests in progress per client, if a proxy owns all connections.
    private let requests = Mutex<[String: Int]>([:])

    var isBehindProxy: Bool { bounds.isBehindProxy }

    init(_ bounds: HTTPBounds, _ application: any HTTPApplication) throws {
        self.bounds = bounds
        self.application = application
        workers = try Workers(bounds.workers)
        lingering = try Lingering(maximum: bounds.connections)
        connections = try Connections(
            patience: .seconds(bounds.patience),
            brief: .seconds(bounds.strangersPatience),
            longest: .seconds(bounds.longestWait),
            perNetwork: bounds.isBehindProxy ? 0 : bounds.perAddress
        )
    }

    /// Stops the workers and ends the streams; returns when the work in progress is answered.
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

    /// Called when the header is complete.
    func begin(_ exchange: RequestExchange) -> Bool {
        let head = exchange.head
        switch plan(exchange) {
        case .body(let limit, let isKnown, let handler):
            exchange.isKnown = isKnown
            exchange.handler = handler
            let isTooLarge = head.length ?? 0 > limit || head.isChunked && limit == 0
            guard !isTooLarge else { return refuse(exchange, HTTPAnswer(.tooLarge(limit))) }
            exchange.limit = limit
            exchange.body = Spool(folder: application.spoolFolder, memory: 64 << 10)
            // An unknown client keeps its first deadline.
            if isKnown { connections.start(exchange.connection) }
            return true
        case .stream(let stream):
            exchange.isKnown = true
            exchange.stream = stream
            // A stream lasts for hours and has a limit of its own.
            leave(exchange)
            return true
        case .answer(let answer, let isKnown):
            exchange.isKnown = isKnown
            guard head.isChunked || head.length ?? 0 > 0 else {
                exchange.answer = answer
                return true
            }
            return refuse(exchange, answer)
        }
    }

    /// Answers before the body is read; libmicrohttpd then closes the connection.
    private func refuse(_ exchange: RequestExchange, _ answer: HTTPAnswer) -> Bool {
        lingering.add(exchange.connection.socket, isKnown: exchange.isKnown)
        return queue(answer, exchange, closing: true)
    }

    private func queue(_ answer: HTTPAnswer, _ exchange: RequestExchange, closing: Bool) -> Bool {
        let isEncrypted = exchange.head.isEncrypted
        return exchange.connection.queue(answer, closing: closing, isEncrypted: isEncrypted)
    }

    /// Called with a part of the body.
    func receive(_ part: UnsafeRawBufferPointer, _ exchange: RequestExchange) -> Bool {
        if exchange.isKnown { connections.give(exchange.connection, timeFor: part.count) }
        return exchange.receive(part)
    }

    private func plan(_ exchange: RequestExchange) -> RequestPlan {
        let head = exchange.head
        guard exchange.connection.headerSize <= bounds.header else {
            let reason = "the header is larger than \(bounds.header) bytes"
            return .answer(HTTPAnswer(HTTPError(status: 431, reason: reason)))
        }
        // With two lengths, another reader might take a part of the body for the next request.
        let hasBoth = head.isChunked && head.fields[.contentLength] != nil
        guard !hasBoth, !head.isAmbiguous else {
            let reason =
                hasBoth
                ? "Content-Length beside Transfer-Encoding"
                : "two Content-Length fields, or a blank in the name of a field"
            return .answer(HTTPAnswer(HTTPError(status: 400, reason: reason)))
        }
        guard admit(exchange) else {
            let reason = "\(bounds.perAddress) requests from \(head.address) are under way already"
            return .answer(HTTPAnswer(HTTPError(status: 429, reason: reason, retryAfter: 5)))
        }
        return application.plan(head)
    }

    /// Counts a request for its client; returns false if the client has too many.
    private func admit(_ exchange: RequestExchange) -> Bool {
        guard let client = exchange.client, bounds.perAddress > 0 else { return true }
        exchange.isAdmitted = requests.withLock { requests in
            let count = requests[client] ?? 0
            guard count < bounds.perAddress else { return false }
            requests[client] = count + 1
            return true
        }
        return exchange.isAdmitted
    }

    private func leave(_ exchange: RequestExchange) {
        guard exchange.isAdmitted, let client = exchange.client else { return }
        exchange.isAdmitted = false
        requests.withLock { requests in
            let count = (requests[client] ?? 1) - 1
            requests[client] = count > 0 ? count : nil
        }
    }

    /// Called when the body is complete, or the answer is ready.
    func proceed(_ exchange: RequestExchange) -> Bool {
        connections.stop(exchange.connection)
        if let answer = exchange.answer {
            guard answer.status != HTTPAnswer.none.status else { return false }
            // When connections are scarce, close this one instead of waiting for another request.
            let isCrowded = connections.count > bounds.connections / 2
            return queue(answer, exchange, closing: isCrowded)
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

    private func begin(_ stream: AnswerStream, _ exchange: RequestExchange) -> Bool {
        let isTaken = streams.withLock { streams in
            streams?[ObjectIdentifier(stream)] = stream
            return streams != nil
        }
        guard isTaken else { return queue(Self.stopping, exchange, closing: true) }
        workers.isAnswering()
        exchange.isCounted = true
        exchange.connection.limitSilence(to: connections.patience)
        stream.begin(exchange.connection)
        return exchange.connection.queue(stream)
    }

    /// Called when the request is over, answered or not.
    func end(_ exchange: RequestExchange) {
        if exchange.isCounted { workers.answered() }
        if let stream = exchange.stream {
            stream.forget()
            _ = streams.withLock { $0?.removeValue(forKey: ObjectIdentifier(stream)) }
        }
        leave(exchange)
        connections.start(exchange.connection, isKnown: exchange.isKnown)
    }

    private static var stopping: HTTPAnswer {
        HTTPAnswer(HTTPError(status: 503, reason: "the server is stopping", retryAfter: 5))
    }
}

extension HTTPApplication {
    fileprivate func answer(_ exchange: RequestExchange) -> HTTPAnswer? {
        exchange.body.map { exchange.handler?($0) ?? answer(exchange.head, $0) }
    }
}
