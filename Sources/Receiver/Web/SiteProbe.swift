// Asks this server by its public address, as a device would.
import Host

package enum SiteProbe {
    /// Returns why nothing answers at `url`; nil once something does.
    ///
    /// Asks again until `limit` is over, because a new certificate takes some seconds.
    package static func trouble(at url: String, within limit: Duration) throws -> String? {
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
                    name: url
                )
                return nil
            } catch {
                guard clock.now() < end else { return "\(error)" }
                _ = stop.sleep(for: .seconds(1))
            }
        }
    }
}
