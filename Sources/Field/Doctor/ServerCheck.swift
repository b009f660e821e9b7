// Checks the server: DNS, connection, certificate, and whether it accepts this device.
import Configuration
import Host
import HTTP
import Setup
import Status
import StatusBoard
import Upload

struct ServerCheck {
    /// The timeout for all requests together.
    private static let patience = Duration.seconds(5)
    private static let enroll = "`sudo waypost enroll --endpoint https://HOST --code CODE`"

    let input: DoctorInput
    private let deadline = SystemClock().now() + Self.patience
    private var upload: UploadSettings { input.configuration.upload }

    func look(_ report: (Finding) -> Void) {
        guard let target = upload.target, case .success(let endpoint) = Endpoint.parse(target)
        else {
            let message = "no server is configured"
            return report(
                upload.isRequired
                    ? .fail("server", "\(message): nothing is collected", next: Self.enroll)
                    : .warn("server", "\(message): records stay on this device", next: Self.enroll)
            )
        }
        let (token, tokenFinding) = readToken()
        let (way, validity) = reach(target, endpoint)
        report(way)
        guard way.state == .ok else { return report(tokenFinding) }
        certificate(target, endpoint, validity).map(report)
        report(verified(target, token) ?? tokenFinding)
        input.report.flatMap(Self.waiting).map(report)
    }

    /// Returns a finding if uploads wait for quiet hours or a budget, or nil.
    static func waiting(_ report: StatusReport) -> Finding? {
        if let end = report.upload.quietUntil {
            let what =
                "nothing is sent before \(end.rfc3339) (upload.quiet); `waypost sync` does not wait"
            return .ok("upload", what)
        }
        guard let budget = report.upload.budget else { return nil }
        let (spentBytes, bytes) = (roughSize(budget.spentBytes), roughSize(budget.bytes))
        let spent = "\(spentBytes) of \(bytes) of today's budget spent"
        let held = report.streams.filter { $0.value.waitsFor != nil }.map(\.key).sorted()
        guard !held.isEmpty else { return .ok("upload", spent) }
        return .warn(
            "upload",
            "\(spent); \(held.joined(separator: ", ")) waits, until \(budget.renewsAt.rfc3339) at most",
            next: "raise upload.daily_budget, or `waypost sync --over-budget`"
        )
    }

    private func settings(_ target: String) -> TransportSettings {
        var settings = upload.transport(target, userAgent: "waypost/\(input.version)")
        settings.timeout = max(.milliseconds(100), deadline - SystemClock().now())
        return settings
    }

    /// Checks DNS and the connection; returns the certificate's validity, which `certificate` verifies.
    private func reach(_ target: String, _ endpoint: Endpoint) -> (Finding, ClosedRange<WallTime>?)
    {
        let settings = settings(target)
        let proxy = ServerProbe.proxy(
            of: settings,
            host: endpoint.host,
            isEncrypted: endpoint.isEncrypted,
            environment: input.environment
        )
        if let proxy { return reach(endpoint.host, through: proxy, settings) }
        do {
            let addresses = try ServerProbe.addresses(of: endpoint.host)
            let validity = try ServerProbe.connect(settings, isVerified: false)
            let message = "\(endpoint.host) (\(addresses.first ?? "")) can be reached"
            return (.ok("server", message), validity)
        } catch {
            let next =
                "check the network (`ip route`, `resolvectl query \(endpoint.host)`) and upload.endpoint"
            return (.fail("server", "\(error)", next: next), nil)
        }
    }

    /// Checks the connection through a proxy, which does the DNS lookup.
    private func reach(
        _ host: String,
        through proxy: ServerProbe.Proxy,
        _ settings: TransportSettings
    ) -> (Finding, ClosedRange<WallTime>?) {
        let path = "through the proxy \(proxy.address.blanked) (\(proxy.variable) of the gateway)"
        do {
            let validity = try ServerProbe.connect(settings, isVerified: false)
            return (.ok("server", "\(host) can be reached \(path)"), validity)
        } catch {
            let next = "check the proxy, and \(proxy.variable) in `systemctl edit waypost`"
            return (.fail("server", "\(host) \(path): \(error)", next: next), nil)
        }
    }

    private func certificate(
        _ target: String,
        _ endpoint: Endpoint,
        _ validity: ClosedRange<WallTime>?
    ) -> Finding? {
        guard endpoint.isEncrypted else { return nil }
        let date = validity.map { String($0.upperBound.rfc3339.prefix(10)) } ?? "an unknown date"
        do {
            _ = try ServerProbe.connect(settings(target))
        } catch {
            let next =
                "renew it on the server, put its authority into upload.ca_file, or set the clock"
            return .fail("certificate", "\(error) (good until \(date))", next: next)
        }
        if let validity, let left = Self.late(validity, at: SystemClock().wall()) {
            let what = "good until \(date), \(counted(Int(left), "day")) more"
            return .warn("certificate", what, next: "renew it on the server")
        }
        return .ok("certificate", "verified, good until \(date)")
    }

    /// Returns the days that a certificate is still good for if it should have been renewed; nil before that.
    ///
    /// That is 14 days before its end, and for one of a short life the last sixth: authorities renew with
    /// a third left, and Caddy's own issues for 12 hours.
    static func late(_ validity: ClosedRange<WallTime>, at now: WallTime) -> Int64? {
        let end = validity.upperBound.milliseconds
        let day: Int64 = 86_400_000
        let left = end - now.milliseconds
        let late = min(14 * day, (end - validity.lowerBound.milliseconds) / 6)
        return left > late ? nil : left / day
    }

    /// Reads the secret; returns it with the finding about its file.
    private func readToken() -> (String?, Finding) {
        do {
            let secret = try upload.secret(input.environment)
            let collection = CollectionCheck(input.configuration, environment: input.environment)
            if let problem = collection.secretFiles.firstResult(collection.ownerProblem) {
                let next = "do that, then `sudo systemctl restart waypost`"
                return (nil, .fail("token", problem, next: next))
            }
            guard upload.destination == .s3 else {
                return (secret, .ok("token", "there, and only its owner may read it"))
            }
            let what = "there, and only their owner may read them; a sync tries them"
            return (nil, .ok("keys", what))
        } catch {
            if error.message.contains(text: "must belong to the user") {
                return (nil, .warn("token", "\(error)", next: "`sudo waypost doctor` may look"))
            }
            return (nil, .fail("token", "\(error)", next: Self.enroll))
        }
    }

    private func verified(_ target: String, _ token: String?) -> Finding? {
        guard let token else { return nil }
        do {
            let settings = settings(target)
            switch try Enrolment.verify(settings, token: token, until: StopSignal()) {
            case .accepted(let maxBody, _):
                let what = "the server knows this device"
                guard let maxBody else { return .ok("token", what) }
                if let advice = input.configuration.sizeAdvice(maxBody) {
                    return .warn("token", "\(what); \(advice.what)", next: advice.next)
                }
                return .ok("token", "\(what), and takes up to \(sizeText(maxBody)) at once")
            case .cannotBeAsked:
                return .ok("token", "present; the server cannot verify it, uploads will show")
            }
        } catch {
            let failure = (error as? Failure) ?? Failure("\(error)")
            let next =
                failure.code == .tokenRefused
                ? "put a valid token into upload.token_file"
                : "check upload.endpoint, and the server's log"
            return .fail("token", "\(failure)", next: next)
        }
    }
}
