// The routes of the receiver (contract, sections 3 and 7).
import Foundation

/// Answers ingest requests.
package struct IngestServer: ReceiverApplication {
    /// Most bytes of a request for a token.
    private static let enrolmentLimit = 4096

    private let archive: Archive
    private let follower: IndexFollower
    private let requests: BatchRequests
    private let tokens: TokenList
    private let enrolments: Enrolments
    private let enrolRoute: EnrolRoute
    private let page: FleetPage
    private let alerts: Alerts
    private let forwarder: InfluxForwarder?
    private let log: ServerLog
    private let version: String
    private let isBehindProxy: Bool

    package var spoolFolder: String { requests.spoolFolder }

    /// `directory`: the archive's; `maxBody`: bytes of a body on the wire; `isBehindProxy`: clients are told apart
    /// by what a proxy says of them; `influx`: where points go.
    package init(
        directory: String,
        tokens: TokenList,
        maxBody: Int,
        version: String,
        isBehindProxy: Bool = false,
        alerts settings: AlertSettings = AlertSettings(),
        influx target: InfluxTarget? = nil,
        log: ServerLog
    ) throws {
        let follower = try IndexFollower(directory: directory, log: log)
        let forwarder = try target.map {
            let sender = InfluxSender(target: $0, userAgent: "waypost-receiver/\(version)")
            return try InfluxForwarder(directory: directory, sender: sender, log: log)
        }
        archive = try Archive(directory: directory, tell: log.warn) {
            follower.note($0)
            forwarder?.note($0)
        }
        // Not before the archive is sound, and this process the one that has it.
        try follower.start()
        try forwarder?.start()
        self.follower = follower
        self.forwarder = forwarder
        enrolments = try Enrolments(directory: directory)
        enrolRoute = EnrolRoute(enrolments)
        let fleet = try Fleet(directory: directory, enrolments: enrolments, follower: follower)
        page = try FleetPage(directory: directory, enrolments: enrolments, fleet: fleet)
        alerts = try Alerts(directory: directory, settings: settings, fleet: fleet, log: log)
        requests = BatchRequests(maxBody: maxBody, spoolFolder: directory)
        self.tokens = tokens
        self.version = version
        self.isBehindProxy = isBehindProxy
        self.log = log
    }

    package func windDown() {}

    package func finish() {
        follower.finish()
        page.finish()
        alerts.finish()
        forwarder?.finish()
    }

    /// Now devices can be late.
    package func begin() throws { try alerts.start() }

    package func isOpen() -> Bool { tokens.isOpen && !enrolments.isInUse() }

    // MARK: By the header

    package func plan(_ head: RequestHead) -> RequestPlan {
        do {
            return try route(head)
        } catch {
            return .answer(log.refused(error))
        }
    }

    private func route(_ head: RequestHead) throws -> RequestPlan {
        switch head.path {
        case "/healthz":
            try head.expect("GET")
            return .answer(health())
        case "/api/device/verify":
            try head.expect("POST")
            return .answer(try verify(head))
        case "/api/device/enroll":
            try head.expect("POST")
            return try requests.body(head, limit: Self.enrolmentLimit)
        case "/api/ingest":
            try head.expect("POST")
            _ = try authorize(head)
            return try requests.plan(head)
        default:
            if let plan = try page.plan(head) { return plan }
            throw Refusal(status: 404, reason: "no such path; POST /api/ingest")
        }
    }

    /// The device that the request's token is bound to, "" for any.
    ///
    /// `waits`: on a worker's thread. On the server's own a token may be good that was ended just now.
    private func authorize(_ head: RequestHead, waits: Bool = false) throws -> String {
        let isFresh = try enrolments.refresh(waits: waits)
        let text = head.fields[.token] ?? ""
        let token = GivenSecret(text: text)
        if let device = enrolments.device(of: token) ?? tokens.device(of: token) {
            try expectGood(device)
            return device
        }
        guard isFresh else { throw Self.changing }
        // Where devices enrol, a server without a list is open no more.
        guard !text.isEmpty, isOpen() else {
            throw Refusal(status: 401, reason: "X-Device-Token is missing or not known")
        }
        return ""
    }

    private func expectGood(_ device: String) throws {
        guard enrolments.isRevoked(device) else { return }
        throw Refusal(status: 401, reason: "the token of \(device) was revoked")
    }

    private static var changing: Refusal {
        Refusal(status: 503, reason: "the tokens are just being changed", retryAfter: 1)
    }

    private func verify(_ head: RequestHead) throws -> HTTPAnswer {
        let device = try authorize(head)
        guard try enrolments.refresh(waits: false) else { throw Self.changing }
        return HTTPAnswer(verified: device)
    }

    private func health() -> HTTPAnswer {
        let more = forwarder.map { ["influx": $0.health] } ?? [:]
        return HTTPAnswer(health: archive.totals, version: version, more: more)
    }

    // MARK: With the body

    package func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer {
        do {
            switch head.path {
            case "/api/ingest": return try ingest(head, body)
            case "/api/device/enroll": return try enrol(head, body)
            default: return try page.answer(head, body, client: client(head))
            }
        } catch {
            return log.refused(error)
        }
    }

    private func enrol(_ head: RequestHead, _ body: Spool) throws -> HTTPAnswer {
        let data = try body.withView { Data($0[0..<$0.count]) }
        let (token, device) = try enrolRoute.exchange(data, from: client(head))
        log.write("\(device) has enrolled")
        return HTTPAnswer(200, ["token": token, "device_id": device])
    }

    /// Whom a wrong code is counted for.
    ///
    /// A proxy adds its client at the end; what is before that anybody may write.
    private func client(_ head: RequestHead) -> String {
        guard isBehindProxy, let list = head.fields[.forwardedFor] else { return head.address }
        let last = list.split(separator: ",").last.map { $0.filter { $0 != " " } }
        return last.map { String($0.prefix(64)) } ?? head.address
    }

    private func ingest(_ head: RequestHead, _ wire: Spool) throws -> HTTPAnswer {
        let started = ContinuousClock.now
        let (device, key) = (try authorize(head, waits: true), try requests.key(head))
        let size = wire.count
        let (body, batch) = try requests.checked(head, wire, from: device)
        try expectGood(batch.device)
        let receipt = try body.withView { try archive.store(batch, key: key, body: $0) }
        log.stored(batch, receipt, bytes: size, since: started)
        return HTTPAnswer(receipt, key: key)
    }
}
