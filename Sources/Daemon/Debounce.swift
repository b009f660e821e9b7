// Gathers changes of the network, so that a link that flaps is not reported each time.

/// Merges changes in quick succession, because links flap and one change causes several messages.
struct Debounce: Sendable {
    /// The quiet time in ms after which a change is reported.
    static let quiet = 1_500
    /// The time in ms after which a change that goes on is reported.
    static let limit = 5_000
    /// The least time in ms between two reports.
    static let gap = 15_000

    private var first: Int64?
    private var last: Int64 = 0
    private var reportedAt: Int64?

    /// Records a change at `now`, in ms of boot time.
    mutating func changed(at now: Int64) {
        if first == nil { first = now }
        last = now
    }

    /// When the change is to be reported, in ms of boot time; nil without a change.
    var due: Int64? {
        guard let first else { return nil }
        let settled = min(last + Int64(Self.quiet), first + Int64(Self.limit))
        return max(settled, reportedAt.map { $0 + Int64(Self.gap) } ?? .min)
    }

    /// Returns true once when a change is due.
    mutating func isOver(at now: Int64) -> Bool {
        guard let due, now >= due else { return false }
        first = nil
        reportedAt = now
        return true
    }
}
