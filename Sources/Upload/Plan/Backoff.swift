// Decides when to retry after a failure.
package import Host

/// Waits of 30, 60, 120, 240 and 300 s with full jitter (waypost-protocol(7), ANSWERS).
///
/// The jitter keeps a fleet that lost its server together from returning together.
package struct Backoff: Sendable {
    private static let steps = [30.0, 60, 120, 240, 300]

    /// Failures in a row.
    package private(set) var failures = 0
    /// When the next request is allowed; nil without a backoff.
    package private(set) var until: BootInstant?
    /// The server asked for this wait (`Retry-After`).
    package private(set) var isOrdered = false
    /// The server has asked for a wait of 30 s or more since the last success.
    package private(set) var wasHeldOff = false

    package init() {}

    /// Starts the wait after a failure; `after` is the wait the server asked for, `random` a number
    /// in 0..<1.
    ///
    /// Waits as long as the server asked for plus a random time (up to as long again, between one
    /// and five minutes): the server may have given all gateways the same time.
    package mutating func failed(at now: BootInstant, after: Duration?, random: Double) {
        let limit = Self.steps[min(failures, Self.steps.count - 1)]
        failures += 1
        isOrdered = after.map { $0 > .zero } ?? false
        if let after, after.inSeconds >= Self.steps[0] { wasHeldOff = true }
        let longest = Self.steps[Self.steps.count - 1]
        let jitter = after.map { $0 > .zero ? min(max(60, $0.inSeconds * 2), longest) : 0 } ?? limit
        until = now + (after ?? .zero) + .milliseconds(Int64(jitter * 1000 * random))
    }

    /// Ends the wait because a sync begins; earlier failures still count.
    package mutating func lift() {
        until = nil
        isOrdered = false
    }

    package mutating func succeeded() { self = Backoff() }

    package func allows(_ now: BootInstant) -> Bool {
        until.map { now >= $0 } ?? true
    }
}
