// When silence is suspicious, and what to do about it.
import Host

/// Climbs from the mildest remedy to the strongest while nothing is heard; a pure value with no clock of its own.
///
/// A place may truly have no beacons. So the recovery is climbed once, then again after growing pauses, and a
/// controller is reset at most three times an hour, whatever happens.
struct SilenceRecovery {
    enum Step: Equatable {
        /// The scan is switched off and on.
        case restart
        /// The controller is reset: HCI_Reset, or the adapter switched off and on.
        case reset
        /// Everything is opened anew, a radio that rfkill keeps silent unblocked.
        case reopen
    }

    /// Silence since the later of the last report and the start of the scan.
    static let limit = Duration.seconds(90)
    /// The same for the steps after the first, where there were beacons before: they would have been heard.
    ///
    /// Less than the 30 s between two checks, or every other check would come a moment too early.
    static let climbLimit = Duration.seconds(25)
    static let pauses = [5, 10, 20, 40, 60].map { Duration.seconds($0 * 60) }
    static let resetsAnHour = 3

    /// The later of the last report and the last start of the scan.
    private var since: BootInstant
    /// The later of the last report and the first start of the scan.
    private var silentSince: BootInstant
    private var hasHeard = false
    private var next: Step? = .restart
    /// When the recovery may be climbed again; nil while it is climbed, or before.
    private var restsUntil: BootInstant?
    private var rounds = 0
    private var resets: [BootInstant] = []
    private var failures = 0
    /// The step reached in this silence.
    private(set) var reached: Step?

    init(at now: BootInstant) {
        since = now
        silentSince = now
    }

    /// The whole recovery has been climbed, and the controller answered all along.
    var isResting: Bool { restsUntil != nil }

    /// How often starting failed since it last worked.
    var failedStarts: Int { failures }

    /// How long nothing has been heard; nil while that is no matter.
    func silence(at now: BootInstant) -> Duration? {
        let silence = now - silentSince
        return silence >= .seconds(60) ? silence : nil
    }

    /// A scan has begun.
    mutating func started(at now: BootInstant) {
        since = now
        failures = 0
    }

    /// A report came; true when it ends a silence in which something had to be done.
    @discardableResult
    mutating func heard(at now: BootInstant) -> Bool {
        since = now
        silentSince = now
        hasHeard = true
        guard reached != nil else { return false }
        next = .restart
        restsUntil = nil
        rounds = 0
        reached = nil
        return true
    }

    /// What is to be done now, if anything.
    mutating func check(at now: BootInstant) -> Step? {
        guard now - since >= limit else { return nil }
        if let restsUntil {
            guard now >= restsUntil else { return nil }
            self.restsUntil = nil
            next = .restart
        }
        guard let step = next, step == .restart || mayReset(at: now) else {
            rest(from: now)
            return nil
        }
        take(step)
        return step
    }

    /// How to try again after a start or a remedy has failed.
    mutating func failed(at now: BootInstant) -> Step {
        failures += 1
        let step: Step =
            switch failures % 3 {
            case 1: .restart
            case 2: .reset
            default: .reopen
            }
        guard step == .restart || mayReset(at: now) else { return .restart }
        return step
    }

    private var limit: Duration {
        hasHeard && reached != nil && !isResting ? Self.climbLimit : Self.limit
    }

    private mutating func take(_ step: Step) {
        reached = step
        next =
            switch step {
            case .restart: .reset
            case .reset: .reopen
            case .reopen: nil
            }
    }

    private mutating func rest(from now: BootInstant) {
        restsUntil = now + Self.pauses[min(rounds, Self.pauses.count - 1)]
        rounds += 1
    }

    /// Whether a reset is within the bounds of the last hour; counts it then.
    private mutating func mayReset(at now: BootInstant) -> Bool {
        resets.removeAll { now - $0 >= .seconds(3600) }
        guard resets.count < Self.resetsAnHour else { return false }
        resets.append(now)
        return true
    }
}
