// Runs the checks against a server, one after the other.
import HTTP
import Host

/// The server that is tried.
package struct ConformanceTarget: Sendable {
    /// Its URL, without a slash at the end.
    package var url: String
    package var token: String
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
        code: String? = nil,
        certificates: String? = nil,
        patience: Duration = .seconds(10)
    ) {
        var url = url[...]
        if url.hasSuffix("/api/ingest") { url = url.dropLast("/api/ingest".count) }
        while url.hasSuffix("/") { url = url.dropLast() }
        self.url = String(url)
        (self.token, self.code, self.certificates) = (token, code, certificates)
        self.patience = patience
    }
}

/// A run of all checks.
package enum Conformance {
    /// Tries a server; calls `each` with every result as it comes.
    ///
    /// Throws a `Failure` if the URL is not valid, nothing accepts a connection there, or the first
    /// request is not answered. Stores some records under a device of its own, which it returns.
    package static func run(
        _ target: ConformanceTarget,
        _ each: (ConformanceResult) -> Void
    ) throws -> String {
        let trial = try ConformanceTrial(target)
        _ = try trial.connect()
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

    private static func result(_ check: ConformanceCheck, _ trial: ConformanceTrial)
        -> ConformanceResult
    {
        var result = ConformanceResult(check: check, verdict: .ok)
        do {
            try check.body(trial)
        } catch CheckEnd.skipped(let reason) {
            (result.verdict, result.reason) = (.skipped, reason)
        } catch {
            result.verdict = .failed
            result.reason = if case CheckEnd.failed(let text) = error { text } else { "\(error)" }
            (result.sent, result.got) = (trial.sent, trial.got)
        }
        return result
    }
}
