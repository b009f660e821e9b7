// Which threads hang: tells the call that they are in, starts them anew, and in the end has the program restarted.
import Host
import StatusBoard
import Synchronization

/// One part over time, by the last words of its thread; a pure value.
struct PartHealth: Sendable {
    /// So often in an hour a part that hangs is started anew.
    static let recoveries = 3

    enum Verdict: Sendable, Equatable {
        case asBefore
        /// It has been in a call for longer than it meant to; told once a call.
        case hangs(call: String, for: Duration)
        case isBack
    }

    /// Since when it hangs, counted over all runs that were started meanwhile.
    private(set) var hungSince: BootInstant?
    /// When the call that was told of was entered.
    private var told: BootInstant?
    private var recovered: [BootInstant] = []

    /// Judges at a tick of the health timer.
    mutating func judge(
        _ word: Heartbeat.Word?,
        at now: BootInstant,
        patience: Duration
    ) -> Verdict {
        // Ticks are not exact: a thread judged a moment before its time is over would be told a tick later.
        if let word, word.overdue(at: now) >= patience - patience / 30 {
            hungSince = hungSince ?? word.due
            guard told != word.since else { return .asBefore }
            told = word.since
            return .hangs(call: "\(word.call)", for: word.overdue(at: now))
        }
        guard hungSince != nil else { return .asBefore }
        // A new run has to work for a while first: the run before it hung only after a while, too.
        if let last = recovered.last, now - last < patience * 2 { return .asBefore }
        (hungSince, told) = (nil, nil)
        return .isBack
    }

    /// Whether it may be started anew now; counts it.
    mutating func mayRecover(at now: BootInstant) -> Bool {
        recovered.removeAll { now - $0 > .seconds(3600) }
        guard recovered.count < Self.recoveries else { return false }
        recovered.append(now)
        return true
    }

    /// It has hung for so long that only a restart of the program is left: 5 minutes for 30 s of patience.
    func isLost(at now: BootInstant, patience: Duration) -> Bool {
        hungSince.map { now - $0 >= patience * 10 } ?? false
    }
}

/// Judges the threads of a gateway; called by its one health timer.
final class Supervisor: Sendable {
    /// A thread, and what is to be done about it.
    struct Part: Sendable {
        var name: String
        /// nil while there is no such thread.
        var word: @Sendable () -> Heartbeat.Word?
        /// Wakes one that may wait for ever.
        var ask: @Sendable () -> Void = {}
        /// What the message of a hang ends with: what happens, or what to do.
        var advice = "it is waited for"
        /// Tells the board since when it hangs; without it the list of errors is told.
        var failed: (@Sendable (Failure, _ since: BootInstant) -> Void)?
        /// Starts it anew; nil where that cannot be done.
        var recover: (@Sendable () -> Void)?
        /// Restarting the whole program is better than going on without it.
        var isVital = true
        var isBack: @Sendable () -> Void = {}
    }

    private struct Content {
        var health: [String: PartHealth] = [:]
        var lastCheck: BootInstant?
        /// The last time for which the whole machine slept.
        var sleep: (end: BootInstant, length: Duration)?
    }

    private let parts: [Part]
    private let patience: Duration
    private let interval: Duration
    private let clock: any HostClock
    private let errors: ErrorLog
    private let log: Log
    private let content = StateBox(Content())

    /// `interval`: how often `check` is called.
    init(
        _ parts: [Part],
        patience: Duration,
        interval: Duration,
        clock: any HostClock,
        errors: ErrorLog,
        log: Log
    ) {
        self.parts = parts
        self.patience = patience
        self.interval = interval
        self.clock = clock
        self.errors = errors
        self.log = log
    }

    /// Judges all parts and wakes them for the next time; false when only a restart of the program is left.
    func check() -> Bool {
        let now = clock.now()
        let last = content.update { content in
            defer { content.lastCheck = now }
            return content.lastCheck
        }
        // If this call comes much too late, the whole machine slept, and no thread can be blamed.
        let delay = last.map { now - $0 - interval } ?? .zero
        if delay < interval / 2 + .seconds(2) {
            for part in parts { judge(part, now) }
        } else {
            content.update { $0.sleep = (now, delay) }
        }
        for part in parts { part.ask() }
        let health = content.value.health
        let lost = parts.filter {
            $0.isVital && health[$0.name]?.isLost(at: now, patience: patience) ?? false
        }
        for part in lost {
            log.error("hangs; this program is to be restarted", ["part": part.name])
        }
        return lost.isEmpty
    }

    private func judge(_ part: Part, _ now: BootInstant) {
        var word = part.word()
        // A wait that began before a sleep of the machine takes so much longer.
        if let sleep = content.value.sleep, let said = word, said.since < sleep.end {
            word?.due = said.due.map { $0 + sleep.length }
        }
        let verdict = content.update {
            $0.health[part.name, default: PartHealth()]
                .judge(word, at: now, patience: patience)
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
        let step = mayRecover ? "it is started anew" : part.advice
        let seconds = Int(time.inSeconds.rounded())
        let failure = Failure("\(part.name): no sign of life for \(seconds) s, in \(call); \(step)")
        log.error("hangs", ["part": part.name, "in": call, "why": failure.message])
        if let failed = part.failed {
            failed(failure, now - time)
        } else {
            errors.add(failure, at: clock.now())
        }
        if mayRecover { part.recover?() }
    }
}
