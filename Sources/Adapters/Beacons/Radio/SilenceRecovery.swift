// Decides when silence is suspicious, and how to recover.
import Host

/// Escalates from the mildest remedy to the strongest during silence; a pure value without a clock.
///
/// A site may truly have no beacons. So the steps are taken once, then again after growing pauses;
/// resets and reopens together happen at most three times per hour.
struct SilenceRecovery {
    enum Step: Equatable {
        /// Switch the scan off and on.
        case restart
        /// Reset the controller: HCI_Reset, or switch the adapter off and on.
        case reset
        /// Reopen everything, and unblock a radio blocked by rfkill.
        case reopen
    }

    /// Silence limit for the first step, since the later of the last report and the start of the
    /// scan.
    static let limit = Duration.seconds(90)
    /// The silence limit after the first step if beacons were heard before.
    ///
    /// Shorter than the 30 s between health checks, so that each check takes the next step.
    static let climbLimit = Duration.seconds(25)
    static let pauses = [5, 10, 20, 40, 60].map { Duration.seconds($0 * 60) }
    static let resetsAnHour = 3

    /// The later of the last report and the last start of the scan.
    private var since: BootInstant
    /// The later of the last report and the first start of the scan.
    private var silentSince: BootInstant
    private var hasHeard = false
    private var next: Step? = .restart
    /// End of the pause before the steps start again; nil outside a pause.
    private var restsUntil: BootInstant?
    private var rounds = 0
    private var resets: [BootInstant] = []
    /// Failed starts since the last success.
    private(set) var failedStarts = 0
    /// The strongest step taken in this silence.
    private(set) var reached: Step?

    init(at now: BootInstant) {
        since = now
        silentSince = now
    }

    /// True during a pause: all steps were taken, or the hourly reset limit is reached.
    var isResting: Bool { restsUntil != nil }

    /// Returns the length of a silence; nil if it is under a minute.
    func silence(at now: BootInstant) -> Duration? {
        let silence = now - silentSince
        return silence >= .seconds(60) ? silence : nil
    }

    /// Notes that a scan has started.
    mutating func started(at now: BootInstant) {
        since = now
        failedStarts = 0
    }

    /// Notes a report; true if it ends a silence in which a step was taken.
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

    /// Returns the step to take now, if any.
    mutating func nextStep(at now: BootInstant) -> Step? {
        guard now - since >= limit else { return nil }
        if let restsUntil {
            guard now >= restsUntil else { return nil }
            self.restsUntil = nil
            next = .restart
        }
        guard let step = next, step == .restart || consumeReset(at: now) else {
            rest(from: now)
            return nil
        }
        perform(step)
        return step
    }

    /// Returns the step for the retry after a failed start or remedy.
    mutating func failed(at now: BootInstant) -> Step {
        failedStarts += 1
        let step: Step =
            switch failedStarts % 3 {
            case 1: .restart
            case 2: .reset
            default: .reopen
            }
        guard step == .restart || consumeReset(at: now) else { return .restart }
        return step
    }

    private var limit: Duration {
        hasHeard && reached != nil && !isResting ? Self.climbLimit : Self.limit
    }

    private mutating func perform(_ step: Step) {
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

    /// Counts a reset if the hourly limit allows another one; otherwise returns false.
    private mutating func consumeReset(at now: BootInstant) -> Bool {
        resets.removeAll { now - $0 >= .seconds(3600) }
        guard resets.count < Self.resetsAnHour else { return false }
        resets.append(now)
        return true
    }
}
