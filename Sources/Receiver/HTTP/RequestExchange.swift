// One request and its answer.

/// Used by the server's thread; while the connection is suspended, by one worker.
final class RequestExchange: @unchecked Sendable {
    // Unchecked because it has one user at a time; libmicrohttpd's lock is between them.
    let connection: HTTPConnection
    let head: RequestHead
    /// It has a good token or session.
    var isKnown = false
    /// As a proxy says; nil where none is in front of the server.
    let client: String?
    /// It counts among the requests of its client.
    var isAdmitted = false
    /// Where its body goes; nil: its body is dropped.
    var body: Spool?
    /// Most bytes of the body.
    var limit = 0
    /// What it will be answered, once that is known.
    var answer: HTTPAnswer?
    var stream: AnswerStream?
    /// The workers know of it, and are to hear when it is over.
    var isCounted = false
    private var dropped = 0

    init(_ connection: HTTPConnection, _ head: RequestHead, client: String?) {
        self.connection = connection
        self.client = client
        self.head = head
    }

    /// Bytes of a body that nobody wants which are read for the sake of the answer.
    static func unwanted(isKnown: Bool) -> Int { isKnown ? 64 << 20 : 64 << 10 }

    /// Takes a part of the body; false: there is more of what nobody wants than is put up with.
    func take(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let body, answer == nil else {
            dropped += part.count
            return dropped <= Self.unwanted(isKnown: isKnown)
        }
        do {
            guard body.count + part.count <= limit else { throw HTTPRefusal.tooLarge(limit) }
            try body.append(part)
        } catch let refusal as HTTPRefusal {
            settle(HTTPAnswer(refusal))
        } catch {
            settle(HTTPAnswer(HTTPRefusal(status: 500, reason: "\(error)")))
        }
        return true
    }

    /// It is judged before its body is there: what was kept of that goes, and the rest is dropped.
    private func settle(_ answer: HTTPAnswer) {
        self.answer = answer
        body = nil
    }
}

extension HTTPRefusal {
    static func tooLarge(_ limit: Int) -> HTTPRefusal {
        HTTPRefusal(status: 413, reason: "the body is larger than \(limit) bytes")
    }
}
