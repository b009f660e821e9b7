// Asks this server by its public address, as a device would.
package import Host

package enum SiteProbe {
    /// Returns why nothing answers at `url`; nil once something does.
    ///
    /// Asks again until `limit` is over, because a new certificate takes some seconds.
    ///
    /// `onLoopback`: asks the server at 127.0.0.1 for that URL.
    package static func trouble(
        at url: String,
        within limit: Duration,
        onLoopback: Bool = false
    ) throws -> String? {
        let (clock, stop) = (SystemClock(), try StopSignal())
        let end = clock.now() + limit
        while true {
            do {
                // Any answer at all has passed the check of the certificate.
                _ = try WebPost.exchange(
                    "",
                    headers: [],
                    to: url,
                    as: "waypost-receiver",
                    limit: .seconds(5),
                    until: stop,
                    name: url,
                    onLoopback: onLoopback
                )
                return nil
            } catch {
                guard clock.now() < end else { return "\(error)" }
                _ = stop.sleep(for: .seconds(1))
            }
        }
    }

    /// Returns whether `url` is answered on this machine, with a valid certificate, although
    /// nothing accepts a connection to `address` from here.
    ///
    /// Usual behind a router that does not lead connections from inside to its own address back.
    package static func answersOnlyHere(_ url: String, _ address: HostPort) throws -> Bool {
        do {
            _ = try TCP.connect(host: address.host, port: address.port, until: StopSignal())
            return false
        } catch let error as ConnectError {
            return try !error.isOfName && trouble(at: url, within: .zero, onLoopback: true) == nil
        }
    }
}
