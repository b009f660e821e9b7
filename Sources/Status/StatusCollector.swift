// Makes a status report from the status board and the queue.
import Glibc
package import Host
package import Queue
import Records
package import Setup
import StatusBoard
package import Upload

/// Collects a status report from the board and the queue.
package struct StatusCollector: Sendable {
    let board: GatewayBoard
    let queue: Queue
    let clock: any HostClock
    let clockState: @Sendable () -> ClockState
    var configuration: Configuration
    let deviceID: String
    let version: String
    let bootID: String
    let started: BootInstant
    /// The next tick of the upload timer.
    let nextSync: @Sendable () -> BootInstant?
    /// nil if nothing is uploaded.
    var budget: DayBudget?
    /// Why a power cut would lose all pending records, if it would.
    package var memoryTrouble: String?

    package init(
        board: GatewayBoard,
        queue: Queue,
        clock: any HostClock,
        clockState: @escaping @Sendable () -> ClockState,
        configuration: Configuration,
        deviceID: String,
        version: String,
        bootID: String,
        started: BootInstant,
        nextSync: @escaping @Sendable () -> BootInstant?,
        budget: DayBudget? = nil,
        memoryTrouble: String? = nil
    ) {
        self.board = board
        self.queue = queue
        self.clock = clock
        self.clockState = clockState
        self.configuration = configuration
        self.deviceID = deviceID
        self.version = version
        self.bootID = bootID
        self.started = started
        self.nextSync = nextSync
        self.budget = budget
        self.memoryTrouble = memoryTrouble
    }

    /// Returns the present report; may wait for the disk.
    package func report() -> StatusReport { report(gather()) }

    /// Reads the stored figures; may wait for the disk.
    package func gather() -> StoredFigures {
        StoredFigures(queue, configuration, since: started, at: clock.now())
    }

    /// Returns a report from memory and `stored`; never waits.
    ///
    /// `waiting` is the time for which newer stored figures are overdue.
    package func report(_ stored: StoredFigures?, waiting: Duration? = nil) -> StatusReport {
        let statistics = stored?.statistics ?? []
        var report = StatusReport(
            version: version,
            deviceId: deviceID,
            state: .healthy,
            reasons: [],
            daemon: StatusReport.Daemon(
                running: true,
                pid: Int(getpid()),
                uptimeS: Int((clock.now() - started).milliseconds / 1000),
                rssBytes: stored?.process.residentBytes ?? 0,
                privateBytes: stored?.process.privateBytes ?? 0,
                cpuS: rounded(stored?.process.cpuSeconds ?? 0, 100)
            ),
            clock: clockFigures(),
            sources: sources(statistics),
            streams: streams(statistics),
            upload: uploadFigures(stored),
            storage: storageFigures(stored, statistics),
            disk: stored?.wear.map(StatusReport.DiskFigures.init),
            losses: losses(stored),
            recentErrors: board.errors.recent(at: rightNow),
            errorTotals: board.errors.totals
        )
        board.past.add(to: &report)
        count(statistics, in: &report)
        (report.state, report.reasons) = HealthRules.judge(report, notes(stored, waiting))
        tellRestart(&report)
        return report
    }

    /// Adds the changed keys that need a restart.
    private func tellRestart(_ report: inout StatusReport) {
        let keys = board.needRestart.value
        guard !keys.isEmpty else { return }
        report.reasons.append("restart waypost for \(keys.joined(separator: ", "))")
        if report.state == .healthy { report.state = .degraded }
    }

    private func clockFigures() -> StatusReport.ClockFigures {
        let state = clockState()
        return StatusReport.ClockFigures(
            state: state.isSynced ? "synced" : "unsynced",
            bootId: bootID,
            offsetS: rounded(state.steppedSeconds, 1000),
            contradiction: state.contradiction?.message
        )
    }

    private func sources(_ statistics: [StreamStatistics]) -> [String: StatusReport.Source] {
        var sources: [String: StatusReport.Source] = [:]
        for name in SourceName.allCases {
            let state = board.sources[name]?.state ?? .unknown
            var source = source(state)
            if let reason = board.resting.value[name] {
                source.state = "disabled"
                source.reason = reason
                source.ratePerS = 0
            }
            // An audio record is a chunk, which only the queue can count.
            if name == .audio {
                let sound = statistics.first { $0.stream == .audio }
                source.records = sound?.accepted ?? 0
                if let quiet = sound?.notKept, quiet > 0 {
                    source.detail += ", \(quiet) quiet not kept"
                }
            }
            sources[name.rawValue] = source
        }
        return sources
    }

    /// Raises a source's count to its stream's: a kill loses the counts since the last health tick.
    private func count(_ statistics: [StreamStatistics], in report: inout StatusReport) {
        for (name, stream) in [(SourceName.beacons, Stream.beacons), (.location, .location)] {
            let accepted = statistics.first { $0.stream == stream }?.accepted ?? 0
            let counted = report.sources[name.rawValue]?.records ?? 0
            report.sources[name.rawValue]?.records = max(counted, accepted)
        }
    }

    private func source(_ state: BoardState<SourceReport>) -> StatusReport.Source {
        let report = state.value ?? SourceReport(device: "")
        var source = StatusReport.Source(
            state: "unknown",
            reason: nil,
            code: nil,
            lastRecordAt: report.lastRecordAt.map(date),
            records: report.records,
            ratePerS: 0,
            dropped: report.dropped,
            restarts: report.restarts,
            device: report.device,
            detail: report.detail
        )
        switch state {
        case .unknown: break
        case .loading: source.state = "loading"
        case .loaded:
            source.state = "loaded"
            source.reason = report.concern
            source.ratePerS = rounded(report.ratePerSecond, 100)
        case .error(let failure, _):
            source.state = "error"
            source.reason = failure.message
            source.code = failure.code?.rawValue
        }
        return source
    }

    private func streams(
        _ statistics: [StreamStatistics]
    ) -> [String: StatusReport.StreamFigures] {
        let upload = upload
        let next = nextAttempt(upload).map(wall)
        var streams: [String: StatusReport.StreamFigures] = [:]
        for figures in statistics {
            let state = upload.streams[figures.stream] ?? StreamUpload()
            guard figures.isWorthTelling || state.lastAttemptAt != nil else { continue }
            var stream = StatusReport.StreamFigures(figures)
            stream.inFlight = state.inFlight
            stream.lastAttemptAt = state.lastAttemptAt.map(date)
            stream.lastSuccessAt = state.lastSuccessAt.map(date)
            stream.lastError = state.lastError.map {
                StatusReport.ErrorAt(
                    code: $0.failure.code?.rawValue,
                    message: $0.failure.message,
                    at: date($0.at)
                )
            }
            stream.nextAttemptAt = next
            stream.waitsFor = figures.pending > 0 ? upload.obstacle(of: figures.stream) : nil
            let wire = wire(of: figures.stream)
            streams[wire] = streams[wire].map { $0.adding(stream) } ?? stream
        }
        return streams
    }

    /// Returns a stream's name on the wire; the queue knows that of a stream no longer declared.
    private func wire(of stream: Stream) -> String {
        configuration.wire(of: stream, in: queue.streams)
    }

    /// The uploader's report; adds quiet hours, because the uploader does not report their start.
    private var upload: UploadReport {
        var upload = board.upload.state.value ?? UploadReport()
        let rests: [UploadReport.Phase] = [.idle, .waiting, .waitingForBudget]
        if rests.contains(upload.phase), quietLeft(at: clock.now()) != nil {
            (upload.phase, upload.notBefore, upload.atTheLatest) = (.quietHours, nil, nil)
        }
        return upload
    }

    private func uploadFigures(_ stored: StoredFigures?) -> StatusReport.UploadFigures {
        let (state, upload) = (board.upload.state, upload)
        var phase = upload.phase.rawValue
        switch state {
        case .unknown, .loading, .loaded: break
        case .error: phase = "error"
        }
        if configuration.upload.target == nil { phase = "no endpoint" }
        return StatusReport.UploadFigures(
            lastAttemptAt: upload.lastAttemptAt.map(date),
            lastSuccessAt: upload.lastSuccessAt.map(date),
            state: phase,
            nextSyncAt: nextAttempt(upload).map(wall),
            bytesToday: bytesToday(stored),
            budget: budgetFigures,
            quietUntil: quietLeft(at: clock.now()).map { (clock.wall() + $0).rfc3339 }
        )
    }

    private var budgetFigures: StatusReport.BudgetFigures? {
        guard let bytes = configuration.upload.dailyBudget, let figures = budget?.figures else {
            return nil
        }
        return StatusReport.BudgetFigures(
            bytes: bytes,
            spentBytes: figures.spent,
            renewsAt: (clock.wall() + figures.rest).rfc3339
        )
    }

    /// Returns the rest of the quiet hours at `moment`, or nil outside them.
    private func quietLeft(at moment: BootInstant) -> Duration? {
        let now = clock.stamp()
        guard let quiet = configuration.upload.quiet, let right = queue.rightTime(at: now) else {
            return nil
        }
        return quiet.left(at: right + (moment - now.boot))
    }

    /// Returns the time of the next automatic upload, which is never in quiet hours.
    private func nextAttempt(_ upload: UploadReport) -> BootInstant? {
        let next = upload.notBefore ?? [upload.atTheLatest, nextSync()].compactMap { $0 }.min()
        return next.map { $0 + (quietLeft(at: $0) ?? .zero) }
    }

    private func bytesToday(_ stored: StoredFigures?) -> Int64 {
        let today = queue.today
        return stored?.traffic.first { $0.day == today }?.traffic.total ?? 0
    }

    /// The present time as records are dated.
    ///
    /// A GNSS receiver may give the time long before anybody sets the clock, if ever.
    private var rightNow: Stamp {
        let now = clock.stamp()
        return Stamp(boot: now.boot, wall: queue.rightTime(at: now) ?? now.wall)
    }

    /// Returns a past time by the present wall clock.
    private func date(_ stamp: Stamp) -> String { stamp.wall(by: clock.stamp()).rfc3339 }

    /// Returns a future time by the present wall clock.
    private func wall(_ moment: BootInstant) -> String {
        clock.stamp().wall(at: moment).rfc3339
    }

    private func storageFigures(
        _ stored: StoredFigures?,
        _ statistics: [StreamStatistics]
    ) -> StatusReport.Storage {
        let state = queue.storage.state
        let report = state.value
        var level = report?.level.rawValue ?? "ok"
        if case .error = state { level = "error" }
        let reusable = report?.room.reusableBytes ?? 0
        return StatusReport.Storage(
            databaseBytes: stored?.databaseBytes ?? 0,
            freeBytes: (stored?.freeBytes ?? 0) + reusable,
            reusableBytes: reusable,
            writtenBytes: stored?.process.writtenBytes ?? 0,
            evictedRecords: statistics.reduce(0) { $0 + $1.evicted },
            state: level
        )
    }

    /// Collects the problems for which `status --json` has no field.
    private func notes(_ stored: StoredFigures?, _ waiting: Duration?) -> HealthRules.Notes {
        var notes = HealthRules.Notes()
        notes.setAside = stored?.setAside ?? []
        notes.memory = memoryTrouble
        notes.notCollecting = board.whyNotCollecting.value
        let accepted = board.upload.state.value?.lastSuccessAt?.boot
        notes.card = stored.map { $0.card.all(at: $0.at, accepted: accepted) } ?? []
        switch queue.storage.state {
        case .unknown, .loading: break
        case .loaded(let report): notes.storage = report.detail
        case .error(let failure, _): notes.storage = failure.message
        }
        let small = sizeTrouble(
            configuration.stateDirectory,
            bytes: stored?.totalBytes ?? 0,
            criticalFree: configuration.storage.limits.criticalFree
        )
        if let small, queue.storage.state.value?.level == .critical {
            notes.storage = "\(small); use a larger one, or lower storage.critical_free"
        }
        switch board.upload.state {
        case .unknown, .loading, .loaded: break
        case .error(let failure, _): notes.upload = failure.description
        }
        if let waiting, waiting >= Self.patience {
            let age = stored.map { "\((clock.now() - $0.at).milliseconds / 1000) s old" } ?? ""
            notes.stale =
                "the disk has not answered for \(waiting.milliseconds / 1000) s: "
                + (stored == nil ? "no figures of the queue yet" : "the queue's figures are \(age)")
        }
        return notes
    }

    /// The time after which the status reports a disk that does not answer.
    private static let patience = Duration.seconds(5)

    /// Sums the losses in the database and those not recorded yet.
    private func losses(_ stored: StoredFigures?) -> [StatusReport.Loss] {
        let stored = (stored?.losses ?? []).map {
            StatusReport.Loss(
                stream: wire(of: $0.stream),
                kind: $0.kind.rawValue,
                records: $0.records,
                from: $0.from.rfc3339,
                to: $0.to.rfc3339
            )
        }
        let new = queue.newLosses.map {
            StatusReport.Loss(
                stream: wire(of: $0.stream),
                kind: $0.kind.rawValue,
                records: Int($0.records),
                from: wall($0.from.boot),
                to: wall($0.to.boot)
            )
        }
        var losses: [StatusReport.Loss] = []
        for loss in stored + new {
            let known = losses.firstIndex { ($0.stream, $0.kind) == (loss.stream, loss.kind) }
            if let known { losses[known].add(loss) } else { losses.append(loss) }
        }
        return losses
    }
}

extension StatusReport.Loss {
    /// Adds losses of the same kind; RFC 3339 times of one form compare as text.
    fileprivate mutating func add(_ more: Self) {
        records += more.records
        from = min(from, more.from)
        to = max(to, more.to)
    }
}

extension StatusReport.StreamFigures {
    /// Returns the sum with another stream of the same name on the wire.
    ///
    /// A stream that is no longer declared may have passed its name on.
    fileprivate func adding(_ more: Self) -> Self {
        var sum = self
        sum.pending += more.pending
        sum.pendingBytes += more.pendingBytes
        sum.inFlight += more.inFlight
        sum.quarantined += more.quarantined
        sum.uploaded += more.uploaded
        // RFC 3339 times of one form compare as text.
        sum.oldestPendingAt = [oldestPendingAt, more.oldestPendingAt].compactMap { $0 }.min()
        sum.lastAttemptAt = [lastAttemptAt, more.lastAttemptAt].compactMap { $0 }.max()
        sum.lastSuccessAt = [lastSuccessAt, more.lastSuccessAt].compactMap { $0 }.max()
        sum.lastError = [lastError, more.lastError].compactMap { $0 }.max { $0.at < $1.at }
        sum.waitsFor = waitsFor ?? more.waitsFor
        return sum
    }
}
