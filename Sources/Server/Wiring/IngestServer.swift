// The routes of the receiver (waypost-protocol(7), waypost-receiver(1)).
import Foundation
import ServerArchive
package import ServerBase
package import ServerExports
package import ServerIndex
package import ServerPages
package import ServerWeb

/// Routes requests to the archive, the enrolment and the pages.
package struct IngestServer: ReceiverApplication {
    /// The maximum body of an enrolment request, in bytes.
    private static let enrolmentLimit = 4096

    private let archive: Archive
    private let follower: IndexFollower
    private let requests: BatchRequests
    private let tokens: TokenList
    private let guesses = TokenGuesses()
    private let enrolments: Enrolments
    private let enrolRoute: EnrolRoute
    private let jobs: DeviceJobs
    private let page: FleetPage
    private let alerts: Alerts
    private let forwarder: InfluxForwarder?
    private let retainer: Retainer
    package let metrics: ServerMetrics
    private let log: ServerLog
    private let version: String

    package var spoolFolder: String { requests.spoolFolder }

    /// Opens the data directory.
    ///
    /// `directory`: the archive's; `maxBody`: the maximum size of a body on the wire, in bytes;
    /// `maxPerDay`: the bytes that one device may store per day; `influx`: the InfluxDB that gets
    /// the points; `retention`: how long records are kept; `tiles`: map tiles that the pages may load.
    package init(
        directory: String,
        tokens: TokenList,
        maxBody: Int,
        version: String,
        maxPerDay: Int64,
        alerts settings: AlertSettings = AlertSettings(),
        influx target: InfluxTarget? = nil,
        retention: Retention = Retention(),
        tiles: TilesURL? = nil,
        log: ServerLog
    ) throws {
        let follower = try IndexFollower(directory: directory, log: log)
        let forwarder = try target.map {
            let sender = InfluxSender(target: $0, userAgent: "waypost-receiver/\(version)")
            return try InfluxForwarder(directory: directory, sender: sender, log: log)
        }
        archive = try Archive(directory: directory, bytesPerDay: maxPerDay, warn: log.warn) {
            follower.record($0)
            forwarder?.record($0)
        }
        // Started only after the archive is intact and locked by this process.
        try follower.start()
        try forwarder?.start()
        self.follower = follower
        self.forwarder = forwarder
        enrolments = try Enrolments(directory: directory)
        enrolRoute = EnrolRoute(enrolments, log: log)
        jobs = try DeviceJobs(directory: directory)
        let fleet = try Fleet(directory: directory, enrolments: enrolments, follower: follower)
        page = try FleetPage(
            directory: directory,
            enrolments: enrolments,
            jobs: jobs,
            fleet: fleet,
            libraries: WebLibraries(tiles: tiles)
        )
        alerts = try Alerts(
            directory: directory,
            settings: settings,
            fleet: fleet,
            jobs: jobs,
            log: log
        )
        retainer = try Retainer(directory: directory, retention: retention, log: log)
        metrics = ServerMetrics(
            directory: directory,
            version: version,
            archive: archive,
            fleet: fleet,
            follower: follower,
            refusals: log.refusals
        )
        requests = BatchRequests(maxBody: maxBody, spoolFolder: directory)
        self.tokens = tokens
        self.version = version
        self.log = log
    }

    package func windDown() {}

    package func finish() {
        follower.finish()
        page.finish()
        alerts.finish()
        forwarder?.finish()
        retainer.finish()
    }

    /// Starts alerts and rollouts, because only now can a device be late, and the retention.
    package func begin() throws {
        try alerts.start()
        try retainer.start()
    }

    package func isOpen() -> Bool { tokens.isOpen && !enrolments.isInUse() }

    // MARK: By the header

    package func plan(_ head: RequestHead) -> RequestPlan {
        do { return try route(head) } catch { return .answer(refused(error, head)) }
    }

    /// Logs a refused request, and answers a browser with a page.
    private func refused(_ error: any Error, _ head: RequestHead) -> HTTPAnswer {
        page.refusal(log.refused(error), error, to: head)
    }

    private func route(_ head: RequestHead) throws -> RequestPlan {
        switch head.route {
        case .health:
            try head.expect("GET")
            return .answer(health())
        case .verify:
            try head.expect("POST")
            return .answer(try verify(head), isKnown: true)
        case .jobs:
            try head.expect("GET")
            return .answer(try jobList(head), isKnown: true)
        case .enrol:
            try head.expect("POST")
            return .body(limit: Self.enrolmentLimit)
        case .ingest:
            try head.expect("POST")
            let device = try authorize(head)
            return requests.plan(head, log) { try ingest(head, key: $0, $1, from: device) }
        case .read(let route): return try page.plan(route, head)
        default:
            if let plan = try page.plan(head) { return plan }
            throw HTTPError(status: 404, reason: "no such path; POST /api/ingest")
        }
    }

    /// Returns the device that the request's token is bound to, "" for any.
    ///
    /// It may still accept a token that was revoked a moment ago.
    private func authorize(_ head: RequestHead) throws -> String {
        let isFresh = try enrolments.refresh(waits: false)
        let device = try guesses.check(head) { token in
            if let device = bound(token) { return device }
            guard isFresh else { throw Self.changing }
            return anyDevice(token)
        }
        try expectGood(device)
        return device
    }

    /// Returns the device of an enrolled or listed token.
    private func bound(_ token: GivenSecret) -> String? {
        enrolments.device(of: token) ?? listed(token)
    }

    /// Returns "", for any device, on an open server; nil otherwise.
    private func anyDevice(_ token: GivenSecret) -> String? {
        // Once codes were created, a server without a token list is not open any more.
        !token.text.isEmpty && isOpen() ? "" : nil
    }

    /// Returns the device of a listed token; nil if the device has enrolled since, which ends that
    /// token.
    private func listed(_ token: GivenSecret) -> String? {
        tokens.device(of: token).flatMap { enrolments.isEnrolled($0) ? nil : $0 }
    }

    private func isListed(_ device: String) -> Bool {
        tokens.has(device) && !enrolments.isRevoked(device)
    }

    private func expectGood(_ device: String) throws {
        guard enrolments.isRevoked(device) else { return }
        throw HTTPError(status: 401, reason: "the token of \(device) was revoked")
    }

    private static var changing: HTTPError {
        HTTPError(status: 503, reason: "the tokens are just being changed", retryAfter: 1)
    }

    private func verify(_ head: RequestHead) throws -> HTTPAnswer {
        let device = try authorize(head)
        guard try enrolments.refresh(waits: false) else { throw Self.changing }
        guard try jobs.refresh(waits: false) else { throw Self.changing }
        return HTTPAnswer(verified: device, maxBody: requests.maxBody, jobs: jobs.tag(of: device))
    }

    /// Answers with the jobs of a token's device; a token for any device names it in the query.
    private func jobList(_ head: RequestHead) throws -> HTTPAnswer {
        let (bound, named) = (try authorize(head), head.query["device_id"])
        let device = bound.isEmpty ? named ?? "" : bound
        guard isName(device) else {
            throw HTTPError(status: 400, reason: "device_id is missing or not a plain name")
        }
        guard named == nil || named == device else {
            throw HTTPError(status: 403, reason: "the token belongs to another device_id")
        }
        try expectGood(device)
        guard try enrolments.refresh(waits: false), try jobs.refresh(waits: false) else {
            throw Self.changing
        }
        return HTTPAnswer(200, jobs.list(of: device))
    }

    private func health() -> HTTPAnswer {
        let more = forwarder.map { ["influx": $0.health] } ?? [:]
        return HTTPAnswer(health: archive.totals, version: version, more: more)
    }

    // MARK: With the body

    package func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer {
        do {
            switch head.route {
            case .enrol: return try enrol(head, body)
            case .read(let route): return try page.answer(route, head)
            default: return try page.answer(head, body)
            }
        } catch {
            return refused(error, head)
        }
    }

    private func enrol(_ head: RequestHead, _ body: Spool) throws -> HTTPAnswer {
        // Sees revocations by other processes.
        _ = try enrolments.refresh(waits: true)
        let data = try body.withView { Data($0[0..<$0.count]) }
        return try enrolRoute.answer(data, from: head.address, isListed: isListed) {
            do { try page.names.adopt($0, code: $1) } catch {
                log.warn("\($0) has no label: \(error)")
            }
        }
    }

    /// `device`: as the token of the header says.
    private func ingest(
        _ head: RequestHead,
        key: String,
        _ wire: Spool,
        from device: String
    ) throws -> HTTPAnswer {
        // It may have been revoked or replaced since.
        _ = try enrolments.refresh(waits: true)
        try expectGood(device)
        let token = GivenSecret(text: head.fields[.token] ?? "")
        guard bound(token) ?? anyDevice(token) == device else {
            throw HTTPError(status: 401, reason: "the token was replaced during the upload")
        }
        let size = wire.count
        return try requests.answer(head, key, wire, from: device, log, jobs: { jobs.tag(of: $0) }) {
            batch,
            body in
            try expectGood(batch.device)
            let receipt = try archive.store(batch, key: key, body: body)
            metrics.received(bytes: size)
            // If a reply cannot be noted, the gateway sends it again; other batches do not depend on
            // the jobs.
            let replies = batch.filedReplies
            if !replies.isEmpty {
                _ = try jobs.refresh(waits: true)
                try jobs.close(replies, of: batch.device)
            } else if (try? jobs.refresh(waits: false)) == nil {
                log.warn("the database of jobs cannot be read; see `waypost-receiver job --help`")
            }
            return receipt
        }
    }
}
