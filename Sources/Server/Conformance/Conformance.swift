// Runs the checks against a server, one after the other.
import HTTP
import Host

/// The server that is tried.
package struct ConformanceTarget: Sendable {
    /// Its URL, without a slash at the end.
    package var url: String
    package var token: String
    /// The device to which the token belongs; nil if it is good for any.
    package var device: String?
    /// An enrolment code; nil without one.
    package var code: String?
    /// A file with more certificate authorities.
    package var certificates: String?
    /// The longest wait for one answer.
    package var patience: Duration

    /// `url` may end in a slash or in the address of uploads, as `upload.endpoint` does.
    package init(
        url: String,
        token: String,
        device: String? = nil,
        code: String? = nil,
        certificates: String? = nil,
        patience: Duration = .seconds(10)
    ) {
        var url = url[...]
        while url.hasSuffix("/") { url = url.dropLast() }
        if url.hasSuffix("/api/ingest") { url = url.dropLast("/api/ingest".count) }
        while url.hasSuffix("/") { url = url.dropLast() }
        self.url = String(url)
        (self.token, self.device, self.code) = (token, device, code)
        (self.certificates, self.patience) = (certificates, patience)
    }

    /// The token would go to another machine without encryption.
    package var isExposed: Bool {
        guard case .success(let endpoint) = Endpoint.parse(url) else { return false }
        return !endpoint.isEncrypted && !endpoint.isLoopback
    }
}

/// A run of all checks.
package enum Conformance {
    /// Tries a server; calls `each` with every result as it comes.
    ///
    /// Throws a `Failure` if the URL is not valid, nothing accepts a connection there, the first
    /// request is not answered, or the URL or the token is not the server's. Stores some records
    /// under the device that it returns.
    package static func run(
        _ target: ConformanceTarget,
        _ each: (ConformanceResult) -> Void
    ) throws -> String {
        let trial = try ConformanceTrial(target)
        _ = try trial.connect()
        try refuseWrongTarget(trial)
        for check in ConformanceCheck.all {
            let result = result(check, trial)
            // Something else than a web server would use up the time limit of every check.
            guard trial.hasAnswered else {
                throw Failure("\(target.url) does not answer requests: \(trial.got)")
            }
            each(result)
        }
        return trial.device
    }

    /// Uploads a good batch: each check would fail with a token or a URL of something else.
    private static func refuseWrongTarget(_ trial: ConformanceTrial) throws {
        switch try? trial.upload(trial.batch()).status {
        case 403:
            throw Failure(
                "the token is refused for device \(trial.device): \(trial.got); name its device with --device"
            )
        case 404: throw Failure("nothing is at \(trial.target.url)/api/ingest: \(trial.got)")
        default: break
        }
    }

    private static func result(_ check: ConformanceCheck, _ trial: ConformanceTrial)
        -> ConformanceResult
    {
        var result = ConformanceResult(check: check, verdict: .ok)
        do {
            try check.body(trial)
        } catch CheckEnd.skipped(let reason) {
            (result.verdict, result.reason) = (.skipped, reason)
        } catch CheckEnd.unseen {
            result.isUnseen = true
            (result.verdict, result.reason) = (.skipped, "storing cannot be seen")
        } catch {
            result.verdict = .failed
            result.reason = if case CheckEnd.failed(let text) = error { text } else { "\(error)" }
            (result.sent, result.got) = (trial.sent, trial.got)
        }
        return result
    }
}
