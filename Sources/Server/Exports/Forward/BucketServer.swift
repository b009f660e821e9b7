// A receiver that puts batches into a bucket. It has no state, so that many can run behind a load
// balancer.
import Glibc
import Host
import ServerArchive
package import ServerBase
package import ServerWeb

/// Answers ingest requests; has no pages, alerts or enrolment.
package struct BucketServer: ReceiverApplication {
    private let requests: BatchRequests
    private let store: BucketStore
    private let tokens: TokenList
    private let guesses = TokenGuesses()
    private let version: String
    private let log: ServerLog

    package var spoolFolder: String { requests.spoolFolder }

    /// `maxBody`: bytes of a body on the wire; `spoolFolder`: for large bodies, in unlinked files.
    package init(
        _ place: BucketPlace,
        spoolFolder: String,
        tokens: TokenList,
        maxBody: Int,
        version: String,
        log: ServerLog
    ) throws {
        requests = BatchRequests(maxBody: maxBody, spoolFolder: spoolFolder)
        store = try BucketStore(place, folder: spoolFolder, log: log)
        self.tokens = tokens
        self.version = version
        self.log = log
    }

    package func isOpen() -> Bool { tokens.isOpen }

    package func begin() {}

    /// Ends uploads after two seconds; the gateway retries, perhaps with another receiver.
    package func windDown() {
        let store = store
        let end: @Sendable () -> Void = {
            sleep(2)
            store.end()
        }
        do { try OwnThread("end-uploads", end).detach() } catch { store.end() }
    }

    package func finish() {}

    package func plan(_ head: RequestHead) -> RequestPlan {
        do { return try route(head) } catch { return .answer(log.refused(error)) }
    }

    private func route(_ head: RequestHead) throws -> RequestPlan {
        switch head.route {
        case .health:
            try head.expect("GET")
            return .answer(HTTPAnswer(health: store.totals, version: version))
        case .verify:
            try head.expect("POST")
            let device = try authorize(head)
            let answer = HTTPAnswer(verified: device, maxBody: requests.maxBody)
            return .answer(answer, isKnown: true)
        case .ingest:
            try head.expect("POST")
            let device = try authorize(head)
            return requests.plan(head, log) { key, wire in
                try requests.answer(head, key, wire, from: device, log) {
                    try store.store($0, key: key, body: $1)
                }
            }
        case .enrol:
            let reason = "this server stores into a bucket and has no codes; use its token file"
            throw HTTPError(status: 404, reason: reason)
        default:
            let reason = "no such path; POST /api/ingest (a server with a bucket has no pages)"
            throw HTTPError(status: 404, reason: reason)
        }
    }

    private func authorize(_ head: RequestHead) throws -> String {
        try guesses.check(head) { token in
            tokens.device(of: token) ?? (!token.text.isEmpty && isOpen() ? "" : nil)
        }
    }
}
