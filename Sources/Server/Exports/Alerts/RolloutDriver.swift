// Takes the steps of rollouts of settings, and sends an alert for one that halts.
import Host
import ServerArchive
import ServerIndex

/// Steps the rollouts with the states that the page shows; used by the alerts' thread.
final class RolloutDriver {
    static let pause = Duration.seconds(10)

    private let jobs: DeviceJobs
    private let clock: any HostClock
    private let look: (Int64) throws -> (devices: [DeviceView], note: String?)
    private let log: (String) -> Void
    private var next: BootInstant?
    /// The last failure, which is logged once.
    private var failure: String?

    /// `look` returns the devices at a time (milliseconds since 1970), and a note if events are
    /// missing.
    init(
        jobs: DeviceJobs,
        clock: any HostClock,
        look: @escaping (Int64) throws -> (devices: [DeviceView], note: String?),
        log: @escaping (String) -> Void
    ) {
        (self.jobs, self.clock, self.look, self.log) = (jobs, clock, look, log)
    }

    /// Takes the next steps if due; `add` stores alerts.
    func round(_ add: ([Alert]) throws -> Void) {
        let now = clock.now()
        guard next.map({ now >= $0 }) ?? true else { return }
        next = now + Self.pause
        do {
            if try jobs.hasOpenRollouts() { try step(add) }
            failure = nil
        } catch {
            if failure != "\(error)" { log("rollouts of settings are delayed: \(error)") }
            failure = "\(error)"
        }
    }

    private func step(_ add: ([Alert]) throws -> Void) throws {
        let now = clock.wall()
        let (devices, note) = try look(now.milliseconds)
        let seen = devices.compactMap { view in
            RolloutDevice.Contact(view, isWhole: note == nil).map { (view.id, $0) }
        }
        for halted in try jobs.stepRollouts(Dictionary(seen) { $1 }, at: now) {
            let state = devices.first { $0.id == halted.culprit }?.state
            let alert = Alert(halted, state ?? DeviceState(id: halted.culprit, lastSeen: 0))
            // A kill between the two sends the alert again, with the same id.
            try add([alert])
            try jobs.reportedHalt(of: halted)
            log(alert.text)
        }
    }
}

extension Alert {
    /// The alert about the device that halted a rollout.
    fileprivate init(_ halted: Rollout, _ state: DeviceState) {
        self.init(.halted, state, because: "\(halted.group): \(halted.reason)", at: halted.changed)
    }
}

extension RolloutDevice.Contact {
    /// Nil if the device was never in contact; `isWhole`: all events are known.
    fileprivate init?(_ view: DeviceView, isWhole: Bool) {
        guard let lastSeen = view.lastSeen else { return nil }
        self.init(lastSeen: lastSeen)
        (silence, interval) = (view.silence, view.knownInterval)
        isLate = view.findings.contains { $0.level == .late }
        lost = isWhole && !view.facts.isUnreadable ? view.lost : nil
        isRevoked = view.level == .revoked
    }
}
