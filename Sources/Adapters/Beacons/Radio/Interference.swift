// Other programs' orders to the scan of an adapter that we do not own.
import Host

/// Says when a scan that another program has ended is to be started again; a pure value.
///
/// `bluetoothctl scan on`, `hcitool lescan`, `hciconfig reset` use the same scan: we hear what it hears while it
/// is on, and when it is switched off, ours is.
struct Interference {
    /// Those who switch a scan off to give it other parameters switch it on again within this time.
    static let settling = Duration.milliseconds(500)
    /// Two programs that each restart the scan must not wear the radio out.
    static let pause = Duration.seconds(5)
    /// A scan that hides repeats is replaced by ours after this time.
    ///
    /// The program that began it may be gone, for a scan outlives its program; one that is still there hears more.
    static let patience = Duration.seconds(60)

    private var dueAt: BootInstant?
    private var restartedAt: BootInstant?
    /// The scan that is on now is another program's: switching it off would end that for good.
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

    /// Until there is something to do; nil when there is not.
    func delay(_ now: BootInstant) -> Duration? { dueAt.map { max(.zero, $0 - now) } }

    /// True once when the scan is to be started again.
    mutating func isDue(at now: BootInstant) -> Bool {
        guard let at = dueAt, now >= at else { return false }
        dueAt = nil
        restartedAt = now
        return true
    }
}
