// When to try again after a failure.
package import Host

/// Waits of 30, 60, 120, 240, 300 s with full jitter (contract, section 3): a fleet that lost its server
/// together must not come back together.
package struct Backoff: Sendable {
    private var failures = 0
    /// No request before this moment; nil when nothing holds.
    package private(set) var until: BootInstant?

    package init() {}

    /// After a failure; `after` is what the server asked for, `random` a number in 0..<1.
    package mutating func failed(at now: BootInstant, after: Duration?, random: Double) {
        let steps = [30.0, 60, 120, 240, 300]
        let limit = steps[min(failures, steps.count - 1)]
        failures += 1
        until = now + (after ?? .milliseconds(Int64(limit * 1000 * random)))
    }

    /// A server asked for a longer wait than the failure before.
    package mutating func wait(until then: BootInstant) {
        until = until.map { max($0, then) } ?? then
    }

    /// While a sync runs nothing waits; how often it failed before still counts.
    package mutating func lift() { until = nil }

    package mutating func succeeded() { self = Backoff() }

    package func allows(_ now: BootInstant) -> Bool {
        until.map { now >= $0 } ?? true
    }
}
