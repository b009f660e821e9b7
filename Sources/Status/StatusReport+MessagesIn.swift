// The MQTT intake as the status shows it.
package import Host

extension StatusReport {
    /// The subscriber whose messages become records of declared streams, since the start.
    package struct MessagesIn: Codable, Sendable, Equatable {
        package enum State: String, Codable, Sendable {
            /// It waits for the device to be enrolled, or for room on the disk.
            case waiting
            case connecting, connected, error
        }

        package var broker: String
        package var state = State.connecting
        /// The problem, also of a connection that works in part.
        @OrNull package var reason: String?
        @OrNull package var code: ErrorCode?
        /// Messages stored as records.
        package var messages = 0
        /// Received and not on disk yet.
        package var waiting = 0
        /// Sent again by the broker, and recognised as stored.
        package var redelivered = 0
        /// Acknowledged and never stored: too long, not UTF-8, or for no stream.
        package var refused = 0
        /// Of QoS 0, and lost because the queue did not store them.
        package var lost = 0
        /// Old values that the broker sent because of a new subscription; not stored.
        package var retained = 0
        /// Published by this gateway itself; not stored.
        package var own = 0
        /// Stored, though the broker may have sent them before without saying so.
        package var possiblyTwice = 0
        /// Streams that get more than their `max_rate`, so that messages are refused: since when.
        package var excesses: [String: WallTime]?

        /// One line per problem; the connection's is first.
        var problems: [String] {
            let streams = (excesses ?? [:]).sorted { $0.key < $1.key }.map { name, since in
                "stream \(name) has got more than stream.\(name).max_rate since \(since.rfc3339), so "
                    + "messages are refused; raise it, or publish less"
            }
            return [reason].compactMap { $0 } + streams
        }

        package init(broker: String) { self.broker = broker }

        /// One line for people.
        var line: String {
            let counts = [
                (waiting, "waiting"), (redelivered, "sent again"), (refused, "refused"),
                (lost, "lost"), (retained, "retained not stored"), (own, "of its own not stored"),
                (possiblyTwice, "possibly twice"),
            ]
            let more = counts.filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined()
            return "\(state.rawValue) \(broker), \(messages) messages\(more)"
        }
    }
}
