// A server whose uploads go wrong on purpose, so that a client can be tried on it.
package import ServerBase
package import ServerWeb
import Synchronization

/// Wraps a server: its uploads go wrong in the ways of waypost-protocol(7), ANSWERS.
///
/// A client that keeps to that page brings every record, and each once. One seed draws the same ways
/// for the same requests in the same order. Pages, jobs and enrolment are left alone.
package final class TormentedServer: ReceiverApplication {
    private let server: any ReceiverApplication
    private let moods: Mutex<Moods>

    package var spoolFolder: String { server.spoolFolder }

    package init(_ server: any ReceiverApplication, seed: UInt64) {
        self.server = server
        moods = Mutex(Moods(state: seed))
    }

    package func isOpen() -> Bool { server.isOpen() }
    package func begin() throws { try server.begin() }
    package func windDown() { server.windDown() }
    package func finish() { server.finish() }
    package func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer {
        server.answer(head, body)
    }

    package func plan(_ head: RequestHead) -> RequestPlan {
        switch head.route {
        case .ingest: plan(upload: head)
        // A portal is in front of the whole server.
        case .verify where moods.withLock({ $0.meetsPortal() }): .answer(.portal)
        default: server.plan(head)
        }
    }

    private func plan(upload head: RequestHead) -> RequestPlan {
        let (mood, draw) = moods.withLock { $0.next(key: head.fields[.idempotencyKey] ?? "") }
        switch mood {
        case .good: return server.plan(head)
        case .losesAnswers: return changed(head) { _ in .none }
        case .cutsAnswers: return changed(head) { $0.cut }
        case .losesRequests: return instead(.none)
        case .refuses: return instead(HTTPAnswer(422, ["error": "tormented: refused"]))
        case .tooLarge:
            let limit = 600 + draw % 8192
            guard head.length ?? 0 > limit else { return server.plan(head) }
            return instead(HTTPAnswer(.tooLarge(limit)))
        case .fails: return instead(.failure(draw))
        case .refusesToken: return instead(HTTPAnswer(draw % 2 == 0 ? 401 : 403, [:]))
        case .wrongPath: return instead(.wrongPath(draw))
        case .portal: return instead(.portal)
        case .busy: return instead(HTTPAnswer(409, ["error": "tormented: being stored"]))
        }
    }

    /// The server stores what comes; the client gets another answer.
    private func changed(
        _ head: RequestHead,
        _ change: @escaping @Sendable (HTTPAnswer) -> HTTPAnswer
    ) -> RequestPlan {
        let plan = server.plan(head)
        guard case .body(let limit, let isKnown, let answer) = plan else { return plan }
        return .body(limit: limit, isKnown: isKnown) { [server] body in
            change(answer?(body) ?? server.answer(head, body))
        }
    }

    /// The server does not see the request; its body is read, or the client may miss the answer.
    private func instead(_ answer: HTTPAnswer) -> RequestPlan {
        .body(limit: 64 << 20, isKnown: true) { _ in answer }
    }
}

/// The present way in which uploads go wrong, and the numbers that decide it.
private struct Moods {
    enum Mood: CaseIterable {
        case good, losesAnswers, cutsAnswers, losesRequests, refuses, tooLarge, fails, refusesToken
        case wrongPath, portal, busy
    }

    private var mood = Mood.good
    private var state: UInt64
    /// How many more requests the mood lasts.
    private var left = 1
    private var busyKeys: Set<String> = []

    init(state: UInt64) { self.state = state }

    /// The mood for one request with a number for its details; a key is busy at its first try only.
    mutating func next(key: String) -> (Mood, Int) {
        if left == 0 {
            // Half of the time it is good, or nothing would ever arrive.
            mood = draw() % 2 == 0 ? .good : Mood.allCases[draw() % Mood.allCases.count]
            left = 1 + draw() % 6
        }
        left -= 1
        let isBusy = mood == .busy && busyKeys.insert(key).inserted
        return (mood == .busy && !isBusy ? .good : mood, draw())
    }

    /// Whether a request to verify gets the portal; it counts as one of those that the mood lasts.
    mutating func meetsPortal() -> Bool {
        guard mood == .portal, left > 0 else { return false }
        left -= 1
        return true
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    private mutating func draw() -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ mixed >> 31) >> 1)
    }
}

extension HTTPAnswer {
    /// As a captive portal or an error page of a proxy.
    fileprivate static var portal: HTTPAnswer {
        var answer = HTTPAnswer(200, body: Array("<html>Accept the terms</html>".utf8))
        answer.headers = [("Content-Type", "text/html")]
        return answer
    }

    fileprivate static func failure(_ draw: Int) -> HTTPAnswer {
        let statuses = [500, 502, 503, 504, 408, 425, 429]
        let status = statuses[draw % statuses.count]
        let delay = [nil, 0, 1, 30][draw / 8 % 4]
        return HTTPAnswer(HTTPError(status: status, reason: "tormented", retryAfter: delay))
    }

    fileprivate static func wrongPath(_ draw: Int) -> HTTPAnswer {
        HTTPAnswer([404, 405, 301, 308][draw % 4], ["error": "tormented: no such path"])
    }

    /// The first half of its JSON.
    fileprivate var cut: HTTPAnswer {
        var answer = self
        answer.body.removeLast((body.count + 1) / 2)
        return answer
    }
}
