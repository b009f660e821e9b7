// One request and its answer.
package import ServerBase

/// A request in progress, used by the server's thread, or by one worker while the connection is
/// suspended.
final class RequestExchange: @unchecked Sendable {
    // Unchecked because it has one user at a time; libmicrohttpd's lock synchronizes them.
    let connection: HTTPConnection
    let head: RequestHead
    /// True if the request has a good token or session.
    var isKnown = false
    /// The client's address as the proxy reports it; nil without a proxy.
    let client: String?
    /// True if the request counts among its client's requests.
    var isAdmitted = false
    /// Receives the body; nil if the body is dropped.
    var body: Spool?
    /// The maximum body in bytes.
    var limit = 0
    /// Answers when the body is complete, in place of the application.
    var handler: (@Sendable (Spool) -> HTTPAnswer)?
    /// The answer, once it is decided.
    var answer: HTTPAnswer?
    var stream: AnswerStream?
    /// True if the workers count this request and have to learn of its end.
    var isCounted = false
    private var dropped = 0

    init(_ connection: HTTPConnection, _ head: RequestHead, client: String?) {
        self.connection = connection
        self.client = client
        self.head = head
    }

    /// Bytes of an ignored body that are read so that the client reads the answer.
    static func unwanted(isKnown: Bool) -> Int { isKnown ? 64 << 20 : 64 << 10 }

    /// Receives a part of the body; returns false if an ignored body is too long.
    func receive(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let body, answer == nil else {
            dropped += part.count
            return dropped <= Self.unwanted(isKnown: isKnown)
        }
        do {
            guard body.count + part.count <= limit else { throw HTTPError.tooLarge(limit) }
            try body.append(part)
        } catch {
            settle(
                HTTPAnswer(error as? HTTPError ?? HTTPError(status: 500, reason: "\(error)"))
            )
        }
        return true
    }

    /// Sets the answer before the body is complete; frees the body and drops the rest.
    private func settle(_ answer: HTTPAnswer) {
        self.answer = answer
        body = nil
    }
}

extension HTTPError {
    package static func tooLarge(_ limit: Int) -> HTTPError {
        HTTPError(status: 413, reason: "the body is larger than \(limit) bytes")
    }
}
