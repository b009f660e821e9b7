// The state of the Bluetooth proxy, as the status board shows it.
package import Host

/// Figures of the proxy since it was started.
package struct ProxyReport: Sendable, Equatable {
    /// Clients that have the key.
    package var clients = 0
    /// Advertisements given to clients' sockets, and those that a client was too slow for.
    package var sent = 0
    package var dropped = 0
    /// Connections that ended with a fault, such as a wrong key.
    package var faults = 0
    package var lastFault: (failure: Failure, at: Stamp)?
    /// Why mDNS does not announce the proxy, with the remedy; nil if it does.
    package var unannounced: String?

    package init() {}

    package static func == (one: Self, other: Self) -> Bool {
        (one.clients, one.sent, one.dropped, one.faults, one.unannounced)
            == (other.clients, other.sent, other.dropped, other.faults, other.unannounced)
    }
}

/// The time limits of a client.
package struct ProxyLimits: Sendable {
    /// From the connection to the end of the handshake.
    package var handshake = Duration.seconds(10)
    /// A client that is silent for this long is asked for a sign, as ESPHome does.
    package var idle = Duration.seconds(60)
    /// A client that is silent for this long is disconnected.
    package var silence = Duration.seconds(150)
    /// The time for an answer of the client that was silent for longest, if another one needs its
    /// place.
    package var answer = Duration.seconds(5)
    /// The time that a client has to take the last bytes.
    package var farewell = Duration.seconds(1)
    /// The longest time that an advertisement waits for others to be sent with.
    package var gathering = Duration.milliseconds(100)

    package init() {}
}
