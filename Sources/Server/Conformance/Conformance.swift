// Runs the checks against a server, one after the other.
import HTTP
import Host

/// The server that is tried.
package struct ConformanceTarget: Sendable {
    /// Its URL, without a slash at the end.
    package var url: String
    package var token: String
    /// The device whose records are sent; nil: one that is made up.
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
        for end in ["/", "/api/ingest", "/"] where url.hasSuffix(end) {
            url = url.dropLast(end.count)
        }
        self.url = String(url)
        self.device = device
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
        try expectServer(trial)
        for check in ConformanceCheck.all { each(result(check, trial)) }
        return trial.device
    }

    /// Throws if nothing takes uploads there, so that each check would fail for the same reason.
    private static func expectServer(_ trial: ConformanceTrial) throws {
        let answer = try? trial.upload(trial.batch())
        let what = "\(trial.target.url)/api/ingest: \(trial.hidden(trial.got))"
        switch answer?.status {
        case nil: throw Failure("no request is answered at \(what)")
        case 404, 405: throw Failure("nothing takes uploads at \(what)")
        case 403:
            throw Failure(
                "the token is not good for the device \(trial.device) at \(what); one of a single device needs --device"
            )
        default: return
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
            (result.verdict, result.isUnseen) = (.skipped, true)
            result.reason = "the answers do not say which records it had before"
        } catch {
            result.verdict = .failed
            result.reason = if case CheckEnd.failed(let text) = error { text } else { "\(error)" }
            (result.sent, result.got) = (trial.hidden(trial.sent), trial.hidden(trial.got))
        }
        return result
    }
}
