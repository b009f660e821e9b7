// Posts a body to a URL that may hold a secret.
package import HTTP
package import Host

package enum WebPost {
    /// Posts an alert; returns when the server has answered with 2xx.
    ///
    /// Throws a `Failure` for any other answer, and like `exchange`.
    package static func send(
        _ json: String,
        to url: String,
        userAgent: String,
        limit: Duration = .seconds(30),
        until stop: StopSignal
    ) throws {
        let answer = try exchange(
            json,
            headers: ["Content-Type: application/json"],
            to: url,
            as: userAgent,
            limit: limit,
            until: stop,
            name: "the alert server"
        )
        guard !(200...299).contains(answer.status) else { return }
        throw Failure("the alert server answered \(answer.status)")
    }

    /// Posts a body; returns when the server has answered.
    ///
    /// `limit`: for the whole request; `name`: the server's name in messages. Throws a `Failure` for a
    /// network failure or a stop. Does not follow redirects. Errors never contain the URL, which
    /// may hold a secret.
    package static func exchange(
        _ body: String,
        headers: [String],
        to url: String,
        as userAgent: String,
        limit: Duration,
        until stop: StopSignal,
        name: String,
        onLoopback: Bool = false
    ) throws -> Answer {
        var settings = TransportSettings(endpoint: url, timeout: limit, userAgent: userAgent)
        (settings.alias, settings.connectsToLoopback) = (name, onLoopback)
        settings.names = SettingNames(
            endpoint: "its URL",
            certificates: "this machine's CA certificates"
        )
        let transport = try Transport(settings)
        // A server that sent a status has the data, even if the rest of its answer never came.
        var request = HTTPRequest(posting: RequestBody(Array(body.utf8)), headers: headers)
        (request.limit, request.isStatusEnough) = (limit, true)
        switch transport.send(request, until: stop) {
        case .answered(let answer): return answer
        case .failed(let failure): throw Failure(failure.message)
        case .stopped: throw Failure("stopped")
        }
    }
}
