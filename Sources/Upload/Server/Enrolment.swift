// Asks a server whether it knows this device, before anything is collected for it.
package import Host
package import HTTP
import JSON
import Queue
import StatusBoard

/// Checks URL, TLS and token in one request, or exchanges a code for a token.
package enum Enrolment {
    /// A server's answer about a device.
    package enum Outcome: Sendable, Equatable {
        /// The server knows the device.
        ///
        /// `maxBody`: the bytes of the largest body that it takes; nil if it does not say. `jobs`:
        /// the tag of its list of jobs.
        case accepted(maxBody: Int64? = nil, jobs: String? = nil)
        /// The server has no such URL (404): the first batch that it accepts shows that it knows
        /// the device.
        case cannotBeAsked
    }

    /// Returns the URL of an enrolment action.
    ///
    /// `https://host/api/ingest` is verified at `https://host/api/device/verify`
    /// (waypost-protocol(7), ANSWERS).
    package static func url(ingest: String, _ action: String = "verify") -> String {
        let suffix = "/ingest"
        let base = ingest.hasSuffix(suffix) ? String(ingest.dropLast(suffix.count)) : ingest
        return base + "/device/\(action)"
    }

    /// Asks the server to accept the token.
    ///
    /// Throws a Failure with the server's or the network's message.
    package static func verify(
        _ settings: TransportSettings,
        token: String,
        until stop: StopSignal,
        onTraffic: (Traffic) -> Void = { _ in }
    ) throws -> Outcome {
        let transport = try Transport(settings)
        var request = verification(at: settings.endpoint, token: token)
        request.isOnlyTry = true
        let exchange = transport.send(request, until: stop)
        onTraffic(transport.takeTraffic())
        let answer = try answer(exchange)
        if answer.status == 404 { return .cannotBeAsked }
        let verdict = Verdict(answer)
        if case .tokenRefused = verdict, answer.isPage { throw stranger(answer, settings) }
        try verdict.requireAccepted(by: "the server")
        let terms = try? JSONInput.decode(Terms.self, from: answer.body, snakeCase: true)
        return .accepted(maxBody: terms?.maxBody, jobs: answer.reply.jobs)
    }

    /// Returns whether a server of this protocol answers at the endpoint: it refuses a verification
    /// without a token, in JSON.
    ///
    /// Throws a Failure with the network's message.
    package static func isServed(_ settings: TransportSettings, until stop: StopSignal) throws
        -> Bool
    {
        var request = HTTPRequest(
            posting: RequestBody([]),
            headers: ["Accept: application/json"],
            to: url(ingest: settings.endpoint)
        )
        request.isOnlyTry = true
        let answer = try answer(Transport(settings).send(request, until: stop))
        return answer.isObject && [200, 400, 401, 403].contains(answer.status)
    }

    /// The request by which a server can accept a token.
    static func verification(at endpoint: String, token: String) -> HTTPRequest {
        HTTPRequest(
            posting: RequestBody([]),
            headers: ["X-Device-Token: \(token)", "Accept: application/json"],
            to: url(ingest: endpoint)
        )
    }

    /// Exchanges a one-time code for a device token.
    ///
    /// `wanted` is the token this device proposes. A Waypost server adopts it, and returns it again
    /// for the same code; other servers may return one of their own.
    ///
    /// Throws a Failure with the server's or the network's message.
    package static func exchange(
        code: String,
        deviceID: String,
        wanted: String,
        _ settings: TransportSettings,
        until stop: StopSignal
    ) throws -> String {
        var json = JSONWriter()
        json.object {
            $0.field("code", code)
            $0.field("device_id", deviceID)
            $0.field("token", wanted)
        }
        var request = HTTPRequest(
            posting: RequestBody(json.bytes),
            headers: ["Content-Type: application/json", "Accept: application/json"],
            to: url(ingest: settings.endpoint, "enroll")
        )
        request.isOnlyTry = true
        let answer = try answer(Transport(settings).send(request, until: stop))
        switch answer.status {
        case 200...499 where answer.isPage, 300...399: throw stranger(answer, settings)
        case 200...299:
            guard let given = try? JSONInput.decode(Given.self, from: answer.body) else {
                throw Failure("the server gave no token: \(answer.message)", code: .server)
            }
            return given.token
        case 404, 405:
            throw Failure(
                "nothing at this address gives tokens for codes (\(answer.message)); check the path in "
                    + "\(settings.names.endpoint): a Waypost server needs none, https://HOST is enough",
                code: .server
            )
        case 408, 425, 429:
            throw Failure("the server asks to wait: \(answer.message)", code: .server)
        case 400...499:
            guard answer.isObject else { throw stranger(answer, settings) }
            throw Failure(
                "the server does not accept this code (\(answer.message)); a code works once, for a few days:"
                    + " ask for a new one",
                code: .tokenRefused
            )
        default: throw Failure("server error: \(answer.message)", code: .server)
        }
    }

    /// Reports a refusal that cannot be attributed to the server: only the server's own refusal
    /// counts.
    private static func stranger(_ answer: Answer, _ settings: TransportSettings) -> Failure {
        Failure(
            "the answer is not from a Waypost server, which refuses in JSON (\(answer.message)): "
                + "look for a captive portal or a proxy, and check \(settings.names.endpoint)",
            code: .server
        )
    }

    private struct Terms: Decodable {
        var maxBody: Int64?
    }

    private struct Given: Decodable {
        var token: String
    }

    private static func answer(_ exchange: Exchange) throws -> Answer {
        switch exchange {
        case .stopped: throw Failure("enrolment was interrupted")
        case .failed(let failure): throw failure
        case .answered(let answer): return answer
        }
    }
}
