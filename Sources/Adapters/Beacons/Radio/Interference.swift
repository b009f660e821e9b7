// Handles scan commands of other programs on an adapter that is not exclusively ours.
import Host

/// Decides when to restart a scan that another program has ended; a pure value.
///
/// `bluetoothctl scan on`, `hcitool lescan` and `hciconfig reset` use the same scan as we do. We
/// hear everything while theirs is on; when they switch it off, ours ends, too.
struct Interference {
    /// A program that switches the scan off to change its parameters restarts it within this time.
    static let settling = Duration.milliseconds(500)
    /// Minimum time between restarts, so that two competing programs do not wear the radio out.
    static let pause = Duration.seconds(5)
    /// Time after which our scan replaces one that hides repeats.
    ///
    /// A scan outlives the program that started it; one that still runs only hears more.
    static let patience = Duration.seconds(60)

    private var dueAt: BootInstant?
    private var restartedAt: BootInstant?
    /// The current scan is another program's; switching it off would end it for good.
    private(set) var isTheirs = false

    mutating func saw(_ order: HCI.ScanOrder, at now: BootInstant) {
        isTheirs = order != .off
        switch order {
        case .on(filtersDuplicates: true): dueAt = now + Self.patience
        case .on: dueAt = nil
        case .off:
            let earliest = restartedAt.map { $0 + Self.pause } ?? now
            dueAt = max(now + Self.settling, earliest)
        }
    }

    /// Our own scan has begun.
    mutating func started() {
        dueAt = nil
        isTheirs = false
    }

    /// Returns the time until the next action; nil if none is due.
    func delay(_ now: BootInstant) -> Duration? { dueAt.map { max(.zero, $0 - now) } }

    /// Returns true once when the scan must be restarted.
    mutating func isDue(at now: BootInstant) -> Bool {
        guard let at = dueAt, now >= at else { return false }
        dueAt = nil
        restartedAt = now
        return true
    }
}
