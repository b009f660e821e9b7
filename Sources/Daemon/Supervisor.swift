// Finds hung threads, reports their call, restarts them, and as a last resort has systemd restart
// the program.
import Host
import Status
import StatusBoard
import Synchronization

/// Tracks one part by the heartbeats of its thread; a pure value.
struct PartHealth: Sendable {
    /// The most restarts of a hung part per hour.
    static let recoveries = 3

    enum Verdict: Sendable, Equatable {
        case asBefore
        /// It has been in a call past its deadline; reported once per call.
        case hangs(call: String, for: Duration)
        case isBack
    }

    /// Since when the part hangs, across the restarts in between.
    private(set) var hungSince: BootInstant?
    /// When the reported call began.
    private var reported: BootInstant?
    private var recovered: [BootInstant] = []

    /// Evaluates the last heartbeat at a health tick.
    mutating func evaluate(
        _ word: Heartbeat.Word?,
        at now: BootInstant,
        patience: Duration
    ) -> Verdict {
        // Ticks are not exact: without this margin a thread could be reported a tick late.
        if let word, word.overdue(at: now) >= patience - patience / 30 {
            hungSince = hungSince ?? word.due
            guard reported != word.since else { return .asBefore }
            reported = word.since
            return .hangs(call: "\(word.call)", for: word.overdue(at: now))
        }
        guard hungSince != nil else { return .asBefore }
        // A new run has to work for a while first: the previous one hung only after a while, too.
        if let last = recovered.last, now - last < patience * 2 { return .asBefore }
        (hungSince, reported) = (nil, nil)
        return .isBack
    }

    /// Returns whether the part may be restarted now, and counts the restart.
    mutating func mayRecover(at now: BootInstant) -> Bool {
        recovered.removeAll { now - $0 > .seconds(3600) }
        guard recovered.count < Self.recoveries else { return false }
        recovered.append(now)
        return true
    }

    /// Whether only a restart of the program helps: after 5 minutes for a patience of 30 s.
    func isLost(at now: BootInstant, patience: Duration) -> Bool {
        hungSince.map { now - $0 >= patience * 10 } ?? false
    }
}

/// Checks the threads of a gateway; called by its health timer.
final class Supervisor: Sendable {
    /// A supervised thread, and the actions if it hangs.
    struct Part: Sendable {
        var name: String
        /// Returns the last heartbeat; nil while there is no such thread.
        var word: @Sendable () -> Heartbeat.Word?
        /// Wakes a thread that may wait for ever.
        var ask: @Sendable () -> Void = {}
        /// The end of a hang's message: what happens, or what to do.
        var advice = "waiting for it"
        /// Publishes the hang on the board; without it, the hang goes to the list of errors.
        var failed: (@Sendable (Failure, _ since: BootInstant) -> Void)?
        /// Restarts it; nil if that is not possible.
        var recover: (@Sendable () -> Void)?
        /// Whether restarting the whole program is better than running without it.
        var isVital = true
        var isBack: @Sendable () -> Void = {}
    }

    private struct Content {
        var health: [String: PartHealth] = [:]
        var lastCheck: BootInstant?
        /// The last time that the whole machine slept.
        var sleep: (end: BootInstant, length: Duration)?
        /// The time in suspend since boot, at the last check.
        var suspended: Duration?
    }

    private let parts: [Part]
    private let patience: Duration
    private let interval: Duration
    private let clock: any HostClock
    private let errors: ErrorLog
    private let log: Log
    private let onSuspend: @Sendable (_ from: Stamp, _ to: Stamp) -> Void
    private let content = StateBox(Content())

    /// `interval` is the time between calls of `check`.
    ///
    /// `onSuspend` gets the time of each suspend, as if it had ended when it is noticed.
    init(
        _ parts: [Part],
        patience: Duration,
        interval: Duration,
        clock: any HostClock,
        errors: ErrorLog,
        log: Log,
        onSuspend: @escaping @Sendable (_ from: Stamp, _ to: Stamp) -> Void = { _, _ in }
    ) {
        self.parts = parts
        self.patience = patience
        self.interval = interval
        self.clock = clock
        self.errors = errors
        self.log = log
        self.onSuspend = onSuspend
    }

    /// Checks all parts and wakes them for the next check.
    ///
    /// Returns false if only a restart of the program helps.
    func check() -> Bool {
        recordSuspend()
        let now = clock.now()
        let last = content.update { content in
            defer { content.lastCheck = now }
            return content.lastCheck
        }
        // If this call comes much too late, the whole machine slept: no thread hangs.
        let delay = last.map { now - $0 - interval } ?? .zero
        if delay < interval / 2 + .seconds(2) {
            for part in parts { evaluate(part, now) }
        } else {
            content.update { $0.sleep = (now, delay) }
        }
        for part in parts { part.ask() }
        let health = content.value.health
        let lost = parts.filter {
            $0.isVital && health[$0.name]?.isLost(at: now, patience: patience) ?? false
        }
        for part in lost {
            log.error("hangs; systemd will restart this program", ["part": part.name])
        }
        return lost.isEmpty
    }

    private func recordSuspend() {
        let (end, total) = (clock.stamp(), clock.suspended())
        let length = content.update { content in
            defer { content.suspended = total }
            return content.suspended.map { total - $0 } ?? .zero
        }
        // The two clocks are not read at the same instant.
        guard length >= .seconds(1) else { return }
        onSuspend(end.advanced(by: .zero - length), end)
    }

    private func evaluate(_ part: Part, _ now: BootInstant) {
        var word = part.word()
        // A wait that began before a sleep of the machine gets a later deadline.
        if let sleep = content.value.sleep, let said = word, said.since < sleep.end {
            word?.due = said.due.map { $0 + sleep.length }
        }
        let verdict = content.update {
            $0.health[part.name, default: PartHealth()]
                .evaluate(word, at: now, patience: patience)
        }
        switch verdict {
        case .asBefore: break
        case .hangs(let call, let time): hangs(part, call, time, now)
        case .isBack:
            log.info("works again", ["part": part.name])
            part.isBack()
        }
    }

    private func hangs(_ part: Part, _ call: String, _ time: Duration, _ now: BootInstant) {
        let mayRecover = content.update {
            part.recover != nil && $0.health[part.name]?.mayRecover(at: now) ?? false
        }
        let step = mayRecover ? "it is restarted" : part.advice
        let seconds = Int(time.inSeconds.rounded())
        let failure = Failure("\(part.name): no heartbeat for \(seconds) s, in \(call); \(step)")
        log.error("hangs", ["part": part.name, "in": call, "why": failure.message])
        if let failed = part.failed {
            failed(failure, now - time)
        } else {
            errors.add(failure, at: clock.now())
        }
        if mayRecover { part.recover?() }
    }
}
