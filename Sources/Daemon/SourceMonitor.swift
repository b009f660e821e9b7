// Reports lost and recovered sources; a source that flaps is reported once.
import Host
import Queue
import Records
import Status
import StatusBoard

/// Tracks the absences of one source from its states on the board; a pure value.
struct SourceHealth: Sendable {
    /// A time in which a source did not collect.
    struct Absence: Sendable, Equatable {
        var since: Stamp
        /// When the source collected again; nil while it is absent.
        var until: Stamp?
        /// The newest reason; nil if the source gave none.
        var failure: Failure?
        /// The number of restarts of the source when the absence began.
        var restarts: Int
        /// Whether it has lasted long enough to be reported.
        var isReported = false
    }

    enum Verdict: Sendable, Equatable {
        case lost(Absence)
        case recovered(Absence)
        /// The source failed, and worked again before it counted as lost.
        case brief(Absence)
    }

    private(set) var absence: Absence?
    /// When the source's schedule closed; nil while it is open.
    private var closedAt: BootInstant?
    /// The time of the present absence in which its schedule was closed.
    private var closed = Duration.zero
    private(set) var report = SourceReport(device: "")

    /// Records a state of the board; returns true for the first failure of an absence.
    mutating func record(_ state: BoardState<SourceReport>, at stamp: Stamp) -> Bool {
        report = state.value ?? report
        switch state {
        case .unknown:
            return false
        case .loaded:
            if absence?.until == nil { absence?.until = stamp }
            return false
        case .loading:
            return begin(nil, at: stamp)
        case .error(let failure, _):
            return begin(failure, at: stamp)
        }
    }

    private mutating func begin(_ failure: Failure?, at stamp: Stamp) -> Bool {
        if absence == nil { closed = .zero }
        var absence = absence ?? Absence(since: stamp, restarts: report.restarts)
        let isFirst = absence.failure == nil && failure != nil
        absence.failure = failure ?? absence.failure
        absence.until = nil
        self.absence = absence
        return isFirst
    }

    /// Moves the start of the present absence to an earlier time.
    mutating func isAway(since stamp: Stamp) {
        guard let absence, absence.until == nil, stamp.boot < absence.since.boot else { return }
        self.absence?.since = stamp
    }

    /// Records that the source is switched off: an absence not yet reported is dropped.
    mutating func rests() {
        if absence?.isReported == true { absence?.until = nil } else { absence = nil }
    }

    /// Records whether its schedule is closed, in which time it is not absent.
    ///
    /// An absence goes on in the next window: a device that is missing in many short windows is
    /// lost, too.
    mutating func schedule(isOff: Bool, at now: BootInstant) {
        if isOff {
            closedAt = closedAt ?? now
        } else if let start = closedAt {
            closedAt = nil
            closed += absence.map { max(.zero, now - max(start, $0.since.boot)) } ?? .zero
        }
    }

    /// Evaluates the absence at a health tick; `patience` is the time a source may need to start.
    ///
    /// An absence ends when the source has worked for that long, so that flapping counts once.
    mutating func evaluate(at now: BootInstant, patience: Duration) -> Verdict? {
        guard var absence, closedAt == nil else { return nil }
        if let until = absence.until {
            guard now - until.boot >= patience else { return nil }
            self.absence = nil
            if absence.isReported { return .recovered(absence) }
            return absence.failure == nil ? nil : .brief(absence)
        }
        guard !absence.isReported, now - absence.since.boot - closed >= patience else { return nil }
        absence.isReported = true
        self.absence = absence
        return .lost(absence)
    }
}

/// Follows the sources on the board, and writes events, log lines and the list of errors.
final class SourceMonitor: Sendable {
    private let board: GatewayBoard
    private let clock: any HostClock
    private let patience: Duration
    private let log: Log
    private let accept: @Sendable (Event) -> Void
    private let health: StateBox<[SourceName: SourceHealth]>
    private let subscriptions: [Subscription]
    private let scheduling: Subscription

    /// `patience` is the health timer's interval.
    init(
        _ board: GatewayBoard,
        clock: any HostClock,
        patience: Duration,
        log: Log,
        accept: @escaping @Sendable (Event) -> Void
    ) {
        let health = StateBox([SourceName: SourceHealth]())
        self.board = board
        self.clock = clock
        self.patience = patience
        self.log = log
        self.accept = accept
        self.health = health
        scheduling = board.schedule.subscribe { state in
            let off = state.value?.off ?? [:]
            health.update { all in
                for name in SourceName.allCases {
                    var source = all[name] ?? SourceHealth()
                    source.schedule(isOff: off[name] != nil, at: clock.now())
                    all[name] = source
                }
            }
        }
        subscriptions = board.sources.map { name, publisher in
            publisher.subscribe { state in
                let stamp = clock.stamp()
                let isNews = health.update {
                    $0[name, default: SourceHealth()].record(state, at: stamp)
                }
                guard case .error(let failure, _) = state else { return }
                board.errors.add(failure, at: stamp.boot)
                guard isNews else { return }
                log.warning(
                    "source failed",
                    ["source": name.rawValue, "why": failure.description]
                )
            }
        }
    }

    /// Records that a hung source, which cannot report this itself, has been absent since `since`.
    func isAway(_ name: SourceName, since: BootInstant) {
        let now = clock.stamp()
        let stamp = Stamp(boot: since, wall: now.wall + (since - now.boot))
        health.update { $0[name]?.isAway(since: stamp) }
    }

    /// Evaluates all sources; called at each health tick.
    func check() {
        let now = clock.stamp()
        let resting = board.resting.value
        for name in SourceName.allCases {
            let (verdict, report): (SourceHealth.Verdict?, SourceReport?) = health.update { all in
                // A source that is switched off is neither lost nor back. If its loss was reported,
                // its return is reported later.
                if resting[name] != nil {
                    all[name]?.rests()
                    return (nil, nil)
                }
                let verdict = all[name]?.evaluate(at: now.boot, patience: patience)
                return (verdict, all[name]?.report)
            }
            if let verdict, let report { reportVerdict(verdict, name, report, at: now) }
        }
    }

    private func reportVerdict(
        _ verdict: SourceHealth.Verdict,
        _ name: SourceName,
        _ report: SourceReport,
        at now: Stamp
    ) {
        switch verdict {
        case .lost(let absence): lost(name, absence, report, at: now)
        case .recovered(let absence): recovered(name, absence, report, at: now)
        case .brief(let absence):
            log.info(
                "source works again",
                ["source": name.rawValue, "away": "\(absence.seconds) s"]
            )
        }
    }

    private func lost(
        _ name: SourceName,
        _ absence: SourceHealth.Absence,
        _ report: SourceReport,
        at now: Stamp
    ) {
        let silent = Failure("\(name.rawValue): did not start and gave no reason")
        let failure = absence.failure ?? silent
        if absence.failure == nil { board.errors.add(silent, at: now.boot) }
        log.warning(
            "source lost",
            [
                "source": name.rawValue, "since": absence.since.wall(by: now).rfc3339,
                "why": failure.description,
            ]
        )
        var detail: [(key: String, value: EventValue)] = [
            ("since", .seen(absence.since.wall(by: now))), ("reason", .text(failure.message)),
        ]
        if let code = failure.code { detail.append(("code", .text(code.rawValue))) }
        detail.append(("device", .text(report.device)))
        accept(Event(.sourceLost, source: name.rawValue, detail: detail, stamp: now))
    }

    private func recovered(
        _ name: SourceName,
        _ absence: SourceHealth.Absence,
        _ report: SourceReport,
        at now: Stamp
    ) {
        log.info(
            "source recovered",
            [
                "source": name.rawValue, "away": "\(absence.seconds) s", "device": report.device,
            ]
        )
        let detail: [(key: String, value: EventValue)] = [
            ("away_s", .number(absence.seconds)), ("since", .seen(absence.since.wall(by: now))),
            ("until", .seen((absence.until ?? now).wall(by: now))),
            ("restarts", .integer(Int64(max(0, report.restarts - absence.restarts)))),
            ("device", .text(report.device)),
        ]
        accept(Event(.sourceRecovered, source: name.rawValue, detail: detail, stamp: now))
    }
}

extension SourceHealth.Absence {
    /// Its length to a tenth of a second; 0 while it lasts.
    fileprivate var seconds: Double {
        until.map { rounded(($0.boot - since.boot).inSeconds, 10) } ?? 0
    }
}
