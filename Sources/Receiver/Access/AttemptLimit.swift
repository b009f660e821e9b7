// How often somebody may guess at codes.

/// Wrong codes by address: ten at once, then one in six seconds.
struct AttemptLimit {
    private static let burst = 10.0
    private static let perSecond = 1.0 / 6
    /// Addresses that are remembered.
    private static let most = 1024

    private struct Attempts {
        var count: Double
        var at: ContinuousClock.Instant
    }

    private var attempts: [String: Attempts] = [:]

    /// Seconds until an address may try again; nil: it may.
    func wait(_ address: String, at now: ContinuousClock.Instant) -> Int? {
        let count = count(address, at: now)
        guard count > Self.burst - 1 else { return nil }
        return Int(((count - Self.burst + 1) / Self.perSecond).rounded(.up))
    }

    mutating func failed(_ address: String, at now: ContinuousClock.Instant) {
        let count = count(address, at: now) + 1
        if attempts[address] == nil, attempts.count >= Self.most { forget(at: now) }
        attempts[address] = Attempts(count: count, at: now)
    }

    /// What was counted as an attempt was none.
    mutating func succeeded(_ address: String) {
        attempts[address]?.count -= 1
    }

    private func count(_ address: String, at now: ContinuousClock.Instant) -> Double {
        guard let known = attempts[address] else { return 0 }
        let seconds = Double((now - known.at).components.seconds)
        return max(0, known.count - seconds * Self.perSecond)
    }

    /// Those that have long stopped, else the one that began first.
    private mutating func forget(at now: ContinuousClock.Instant) {
        let before = attempts.count
        attempts = attempts.filter { count($0.key, at: now) > 0 }
        guard attempts.count == before else { return }
        if let oldest = attempts.min(by: { $0.value.at < $1.value.at }) {
            attempts[oldest.key] = nil
        }
    }
}
