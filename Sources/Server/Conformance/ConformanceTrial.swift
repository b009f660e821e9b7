// The requests of one run, and what it has learned about the server.
import Foundation
import HTTP
import Host

/// One run against one server; used by one thread.
final class ConformanceTrial {
    let target: ConformanceTarget
    let stop: StopSignal
    /// The device that is enrolled.
    let newDevice = "conformance-" + UUID().uuidString.lowercased().prefix(8)
    private let transport: Transport
    private let endpoint: Endpoint
    /// The last request and its answer, for the line of a failed check.
    private(set) var (sent, got) = ("", "")
    /// The words that it masks in the answers.
    var secrets: SecretMask
    private(set) var hasAnswered = false

    /// The answer to the first batch; nil before it, and if it was not accepted.
    var first: Answer?
    /// The answer of verify; nil if it is not offered or failed.
    var verified: Answer?
    /// The server says that it knows a record, so a check can see whether one is stored.
    var seesDuplicates = false
    /// A batch that comes again under its key is accepted.
    var repeatsKeys = false
    var inflatesGzip = false
    /// The token of the device that was enrolled.
    var enrolled: String?
    var jobs: String?
    /// It gave a list of jobs.
    var hasJobs = false

    init(_ target: ConformanceTarget) throws {
        (self.target, stop) = (target, try StopSignal())
        secrets = SecretMask([target.token, target.code])
        // A password may be before the host.
        let shown = target.url.lastIndex(of: "@").map { "…\(target.url[$0...])" } ?? target.url
        if target.url.contains("?") { throw Failure("\(shown) has a query; leave it out") }
        switch Endpoint.parse(target.url) {
        case .success(let endpoint): self.endpoint = endpoint
        case .failure(let error): throw Failure("\(shown) \(error.message)")
        }
        var settings = TransportSettings(
            endpoint: target.url,
            timeout: target.patience,
            userAgent: "waypost-receiver",
            certificateFile: target.certificates
        )
        settings.names = Self.names
        transport = try Transport(settings)
    }

    private static let names = SettingNames(endpoint: "the URL", certificates: "--ca-file")

    var device: String { target.device ?? newDevice }
    var patience: Duration { target.patience }
    var host: String { HostPort(host: endpoint.host, port: endpoint.port).description }

    /// A path of the server with the prefix that the URL may have.
    func path(_ path: String) -> String {
        let rest = target.url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
        return (rest.count > 2 ? "/\(rest[2])" : "") + path
    }

    func connect() throws(Failure) -> ByteStream {
        try ByteStream.connect(
            to: endpoint,
            caFile: target.certificates,
            names: Self.names,
            timeout: patience,
            until: stop
        )
    }

    /// A batch of fresh records of this run's device.
    func batch(_ count: Int = 3) -> TrialBatch { TrialBatch(device: device, count: count) }

    /// Gives a server that answers too early time to store what it has answered for.
    func pause() { _ = stop.sleep(for: patience / 10) }

    /// Names a request as the last one.
    func begin(_ what: String) { (sent, got) = (what, "no answer") }

    /// Ends a check: `expected` is what did not come.
    func failed(_ expected: String, got text: String? = nil) -> CheckEnd {
        if let text { got = secrets.masked(text) }
        return .failed(expected)
    }

    // MARK: Requests

    func send(_ what: String, _ request: HTTPRequest) throws -> Answer {
        begin(what)
        var request = request
        // A large body may take its time, as long as it moves.
        let limit = request.body.length > 1 << 16 ? nil : patience
        (request.limit, request.maxAnswer) = (limit, 1 << 20)
        switch transport.send(request, until: stop) {
        case .answered(let answer):
            (got, hasAnswered) = (secrets.masked(answer), true)
            return answer
        case .failed(let failure): throw failed("an answer", got: failure.message)
        case .stopped: throw CheckEnd.skipped("stopped")
        }
    }

    func post(_ path: String, _ json: String, token: String?) throws -> Answer {
        let headers =
            ["Content-Type: application/json"] + (token.map { ["X-Device-Token: \($0)"] } ?? [])
        let body = RequestBody(Array(json.utf8))
        return try send(
            "POST \(path)",
            HTTPRequest(posting: body, headers: headers, to: target.url + path)
        )
    }

    func headers(of batch: TrialBatch, token: String? = nil, _ coding: String? = nil) -> [String] {
        let token = token ?? target.token
        return (token.isEmpty ? [] : ["X-Device-Token: \(token)"])
            + ["Idempotency-Key: \"\(batch.key)\"", "Content-Type: application/json"]
            + (coding.map { ["Content-Encoding: \($0)"] } ?? [])
    }

    /// Uploads a body under the key of a batch; `what` describes it in the report.
    func upload(
        _ body: RequestBody,
        _ what: String,
        of batch: TrialBatch,
        token: String? = nil,
        coding: String? = nil
    ) throws -> Answer {
        let headers = headers(of: batch, token: token, coding)
        let url = target.url + "/api/ingest"
        return try send(
            "POST /api/ingest, \(what), \(body.length) bytes, key \(batch.key)",
            HTTPRequest(posting: body, headers: headers, to: url)
        )
    }

    func upload(_ batch: TrialBatch, _ coding: Compression = .none, token: String? = nil) throws
        -> Answer
    {
        let name = coding.contentEncoding
        var compressor = PieceCompressor(coding)
        let body = RequestBody(try compressor.receive(batch.rows, isLast: true))
        let records =
            batch.data.map { "data [\(printable($0))]" }
            ?? "\(batch.ids.count) records\(printable(batch.more))"
        let what = "\(records), \(name ?? "not compressed")"
        return try upload(body, what, of: batch, token: token, coding: name)
    }

    /// Uploads any text under the key of a batch.
    func upload(text: String, of batch: TrialBatch) throws -> Answer {
        try upload(RequestBody(Array(text.utf8)), printable(text), of: batch)
    }

    /// Uploads a batch as a gateway repeats it: 409 asks for the same batch later.
    func retry(_ batch: TrialBatch) throws -> Answer {
        let end = ContinuousClock.now + patience
        while true {
            let answer = try upload(batch)
            guard answer.status == 409, ContinuousClock.now < end else { return answer }
            _ = stop.sleep(for: patience / 20)
        }
    }

    // MARK: Expectations

    func expect(_ answer: Answer, _ statuses: Int...) throws {
        guard statuses.contains(answer.status) else {
            throw CheckEnd.failed(statuses.map { "\($0)" }.joined(separator: " or "))
        }
    }

    /// Expects 2xx or one of these, after which a gateway does not send the same batch again.
    func expectFinal(_ answer: Answer, _ statuses: Int...) throws {
        guard answer.isAccepted || statuses.contains(answer.status) else {
            throw CheckEnd.failed((["2xx"] + statuses.map { "\($0)" }).joined(separator: " or "))
        }
    }

    func expectAccepted(_ answer: Answer) throws {
        guard answer.isAccepted else { throw CheckEnd.failed("2xx") }
    }

    /// Expects that records were accepted which the server had not had before.
    func expectNew(_ answer: Answer, _ count: Int) throws {
        try expectAccepted(answer)
        try needsDuplicates()
        let known = answer.number("duplicates") ?? count
        guard answer.number("accepted") ?? count - known == count else {
            throw CheckEnd.failed("accepted: \(count)")
        }
    }

    /// Expects that the server has the records of a batch, by sending them under another key.
    func expectKnown(_ batch: TrialBatch, afterPause: Bool = true) throws {
        if afterPause { pause() }
        let answer = try upload(batch.again())
        try expectAccepted(answer)
        try needsDuplicates()
        guard answer.number("duplicates") == batch.ids.count else {
            throw CheckEnd.failed("duplicates: \(batch.ids.count), as these records were accepted")
        }
    }

    func needsDuplicates() throws {
        guard seesDuplicates else { throw CheckEnd.unseen }
    }

    /// Skips the check, with the reason, unless the server can be tried.
    func needs(_ isThere: Bool, _ reason: String) throws {
        if !isThere { throw CheckEnd.skipped(reason) }
    }
}

extension Answer {
    var isAccepted: Bool { (200...299).contains(status) }

    /// The members of its JSON object; nil if it is not one.
    var object: [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
    }

    func number(_ name: String) -> Int? { object?[name] as? Int }

    var maxBody: Int? { number("max_body") }
}
