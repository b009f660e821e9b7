// The state of a live output, for `status`.
package import Host

/// The state of one live output, such as MQTT.
package struct OutputReport: Sendable, Equatable {
    package enum State: String, Sendable {
        case connecting
        case connected
    }

    /// An error, and when it happened.
    package struct ErrorAt: Sendable, Equatable {
        package var failure: Failure
        package var at: BootInstant

        package init(failure: Failure, at: BootInstant) { (self.failure, self.at) = (failure, at) }
    }

    package private(set) var state = State.connecting
    /// Since when it has been in this state.
    package private(set) var since: BootInstant
    /// The server, as people write it.
    package var peer: String
    /// Messages sent since the start of the gateway.
    package var published = 0
    /// Messages that were dropped, newer ones or none having taken their place.
    package var dropped = 0
    package var lastError: ErrorAt?

    package init(peer: String, since: BootInstant) { (self.peer, self.since) = (peer, since) }

    /// The time without a connection after which people should look at it.
    ///
    /// A broker that restarts, or a network that is away for a while, loses no record.
    private static let patience = Duration.seconds(900)

    /// Connections.
    package var clients: Int { state == .connected ? 1 : 0 }

    /// Why people should look at it; nil if they need not.
    package func trouble(at now: BootInstant) -> Failure? {
        state == .connecting && now - since >= Self.patience ? lastError?.failure : nil
    }

    package mutating func became(_ new: State, at now: BootInstant) {
        if new != state { (state, since) = (new, now) }
        if new == .connected { lastError = nil }
    }
}
