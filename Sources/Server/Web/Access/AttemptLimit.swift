// Limits how often one address may guess at codes, tokens and links.

/// Counts wrong secrets per address: a burst of ten, then one per six seconds.
///
/// Secrets that are made here are too long to be guessed. So a good one passes also while somebody at
/// its address guesses: check it first, and count it only if it is wrong.
package struct AttemptLimit {
    private static let burst = 10.0
    private static let perSecond = 1.0 / 6
    /// The number of addresses that are remembered.
    private static let maximum = 1024

    private struct Attempts {
        var count: Double
        var at: ContinuousClock.Instant
    }

    private var attempts: [String: Attempts] = [:]

    package init() {}

    /// Returns the seconds until an address may try again; nil if it may try now.
    package func wait(_ address: String, at now: ContinuousClock.Instant) -> Int? {
        let count = count(address, at: now)
        guard count > Self.burst - 1 else { return nil }
        return Int(((count - Self.burst + 1) / Self.perSecond).rounded(.up))
    }

    /// Counts a wrong secret; returns the seconds until the address may try again if it has had too
    /// many, and then counts nothing.
    package mutating func refused(_ address: String, at now: ContinuousClock.Instant) -> Int? {
        if let seconds = wait(address, at: now) { return seconds }
        failed(address, at: now)
        return nil
    }

    package mutating func failed(_ address: String, at now: ContinuousClock.Instant) {
        let count = count(address, at: now) + 1
        if attempts[address] == nil, attempts.count >= Self.maximum { forget(at: now) }
        attempts[address] = Attempts(count: count, at: now)
    }

    private func count(_ address: String, at now: ContinuousClock.Instant) -> Double {
        guard let known = attempts[address] else { return 0 }
        let seconds = Double((now - known.at).components.seconds)
        return max(0, known.count - seconds * Self.perSecond)
    }

    /// Forgets the addresses whose count is back at zero, or else the one that failed longest ago.
    private mutating func forget(at now: ContinuousClock.Instant) {
        let before = attempts.count
        attempts = attempts.filter { count($0.key, at: now) > 0 }
        guard attempts.count == before else { return }
        if let oldest = attempts.min(by: { $0.value.at < $1.value.at }) {
            attempts[oldest.key] = nil
        }
    }
}
