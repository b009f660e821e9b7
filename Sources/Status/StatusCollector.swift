// Makes a status report from the status board and the queue.
import Audio
import Glibc
package import Host
import Proxy
package import Queue
import Remote
import Records
import Schedule
package import Setup
package import StatusBoard
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
    /// The live outputs, by name.
    let outputs: @Sendable () -> [String: OutputReport]
    /// nil if nothing is uploaded.
    var budget: DayBudget?
    /// Why a power cut would lose all pending records, if it would.
    package var memoryWarning: String?

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
        outputs: @escaping @Sendable () -> [String: OutputReport] = { [:] },
        budget: DayBudget? = nil,
        memoryWarning: String? = nil
    ) {
        (self.board, self.queue, self.clock, self.clockState) = (board, queue, clock, clockState)
        (self.configuration, self.deviceID, self.version) = (configuration, deviceID, version)
        (self.bootID, self.started, self.nextSync) = (bootID, started, nextSync)
        self.outputs = outputs
        (self.budget, self.memoryWarning) = (budget, memoryWarning)
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
        var daemon = stored?.daemon ?? .init(running: true, pid: Int(getpid()))
        daemon.uptimeS = Int((clock.now() - started).milliseconds / 1000)
        var report = StatusReport(
            version: version,
            deviceId: deviceID,
            daemon: daemon,
            clock: clockFigures,
            sources: sources(statistics),
            streams: streams(statistics),
            upload: uploadFigures(stored),
            storage: storageFigures(stored),
            outputs: outputFigures,
            disk: stored?.disk,
            mqttIn: board.messagesIn.value,
            schedule: board.schedule.state.value?.position.map {
                .init(latitude: $0.latitude, longitude: $0.longitude)
            },
            remote: remote,
            losses: losses(stored),
            recentErrors: board.errors.recent(at: rightNow),
            errorTotals: board.errors.totals
        )
        board.past.add(to: &report)
        count(statistics, in: &report)
        (report.state, report.reasons) = HealthRules.evaluate(report, notes(stored, waiting))
        return report
    }

    /// Settings that the device's own file does not permit are not in force.
    private var remote: StatusReport.Remote {
        let shown = board.remote.value
        return configuration.remote.allowsSettings ? shown : .init(lastJob: shown.lastJob)
    }

    private var clockFigures: StatusReport.ClockFigures {
        let state = clockState()
        return StatusReport.ClockFigures(
            state: state.isSynced ? .synced : .unsynced,
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
                source.state = .disabled
                source.reason = reason
                source.ratePerS = 0
            } else if let off = board.schedule.state.value?.off[name] {
                (source.state, source.reason, source.code) = (.scheduledOff, off, nil)
                source.ratePerS = 0
            } else if source.state == .loaded {
                source.reason = source.reason ?? board.schedule.state.value?.remarks[name]
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
            lastRecordAt: report.lastRecordAt.map(date),
            records: report.records,
            dropped: report.dropped,
            restarts: report.restarts,
            device: report.device,
            detail: report.detail
        )
        switch state {
        case .unknown: break
        case .loading: source.state = .loading
        case .loaded:
            (source.state, source.reason) = (.loaded, report.concern)
            source.ratePerS = rounded(report.ratePerSecond, 100)
        case .error(let failure, _):
            (source.state, source.reason, source.code) = (.error, failure.message, failure.code)
        }
        return source
    }

    private func streams(_ statistics: [StreamStatistics]) -> [String: StatusReport.StreamFigures] {
        let upload = upload
        let next = nextAttempt(upload).map(wall)
        var streams: [String: StatusReport.StreamFigures] = [:]
        for figures in statistics {
            let state = upload.streams[figures.stream] ?? StreamUpload()
            guard figures.isWorthTelling || state.lastAttemptAt != nil else { continue }
            var stream = StatusReport.StreamFigures(
                pending: figures.pending,
                pendingBytes: figures.pendingBytes,
                inFlight: state.inFlight,
                quarantined: figures.quarantined,
                oldestPendingAt: figures.oldestPendingAt,
                uploaded: figures.uploaded,
                lastAttemptAt: state.lastAttemptAt.map(date),
                lastSuccessAt: state.lastSuccessAt.map(date),
                lastError: state.lastError.map { .init($0.failure, at: date($0.at)) },
                nextAttemptAt: next,
                waitsFor: figures.pending > 0 ? upload.obstacle(of: figures.stream) : nil,
                resending: figures.resending > 0 ? figures.resending : nil
            )
            stream.show(held: figures, always: configuration.sound.mode != .all)
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
        let (upload, today) = (upload, queue.today)
        var phase = upload.phase
        if case .error = board.upload.state { phase = .error }
        if configuration.upload.target == nil { phase = .noEndpoint }
        return StatusReport.UploadFigures(
            lastAttemptAt: upload.lastAttemptAt.map(date),
            lastSuccessAt: upload.lastSuccessAt.map(date),
            state: phase,
            nextSyncAt: nextAttempt(upload).map(wall),
            bytesToday: stored?.traffic.first { $0.day == today }?.traffic.total ?? 0,
            budget: budgetFigures,
            quietUntil: quietLeft(at: clock.now()).map { clock.wall() + $0 }
        )
    }

    private var budgetFigures: StatusReport.BudgetFigures? {
        guard let bytes = configuration.upload.dailyBudget, let figures = budget?.figures else {
            return nil
        }
        return StatusReport.BudgetFigures(
            bytes: bytes,
            spentBytes: figures.spent,
            renewsAt: clock.wall() + figures.rest
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

    /// The present time as records are dated.
    ///
    /// A GNSS receiver may give the time long before anybody sets the clock, if ever.
    private var rightNow: Stamp {
        let now = clock.stamp()
        return Stamp(boot: now.boot, wall: queue.rightTime(at: now) ?? now.wall)
    }

    /// Returns a past time by the present wall clock.
    private func date(_ stamp: Stamp) -> WallTime { stamp.wall(by: clock.stamp()) }

    /// Returns a future time by the present wall clock.
    private func wall(_ moment: BootInstant) -> WallTime { clock.stamp().wall(at: moment) }

    private var outputFigures: [String: StatusReport.Output]? {
        var figures = outputs().mapValues { output in
            StatusReport.Output(
                state: output.state.rawValue,
                since: wall(output.since),
                peer: output.peer,
                clients: output.clients,
                sent: output.published,
                dropped: output.dropped,
                lastError: output.lastError.map { .init($0.failure, at: wall($0.at)) }
            )
        }
        if configuration.proxy.isEnabled {
            figures["proxy"] = StatusReport.Output(board.proxy.state, date)
        }
        if configuration.audio.isEnabled {
            figures["listen"] = StatusReport.Output(board.listen.state)
        }
        return figures.isEmpty ? nil : figures
    }

    private func storageFigures(_ stored: StoredFigures?) -> StatusReport.Storage {
        let state = queue.storage.state
        var storage = stored?.storage ?? StatusReport.Storage()
        storage.reusableBytes = state.value?.room.reusableBytes ?? 0
        storage.freeBytes += storage.reusableBytes
        storage.state = state.value.flatMap { .init(rawValue: $0.level.rawValue) } ?? .ok
        if case .error = state { storage.state = .error }
        storage.roomDays = stored?.roomDays(storage, configuration.storage)
        return storage
    }

    /// Collects the problems for which `status --json` has no field.
    private func notes(_ stored: StoredFigures?, _ waiting: Duration?) -> HealthRules.Notes {
        var notes = HealthRules.Notes()
        notes.setAside = stored?.setAside ?? []
        notes.memory = memoryWarning
        notes.notCollecting = board.whyNotCollecting.value
        let accepted = board.upload.state.value?.lastSuccessAt?.boot
        notes.card = stored.map { $0.card.all(at: $0.at, accepted: accepted) } ?? []
        switch queue.storage.state {
        case .unknown, .loading: break
        case .loaded(let report): notes.storage = report.detail
        case .error(let failure, _): notes.storage = failure.message
        }
        let small = sizeWarning(
            configuration.stateDirectory,
            bytes: stored?.totalBytes ?? 0,
            criticalFree: configuration.storage.limits.criticalFree
        )
        if let small, queue.storage.state.value?.level == .critical {
            notes.storage = "\(small); use a larger one, or lower storage.critical_free"
        }
        if case .error(let failure, _) = board.upload.state { notes.upload = failure.description }
        notes.needRestart = board.needRestart.value
        notes.outputs = outputs().compactMap { name, output in
            guard let failure = output.trouble(at: clock.now()) else { return nil }
            return "\(name): \(failure.message)"
        }.sorted()
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
        var losses: [StatusReport.Loss] = []
        func add(
            _ stream: Stream,
            _ kind: LossKind,
            _ records: Int,
            _ from: WallTime,
            _ to: WallTime
        ) {
            let new = StatusReport.Loss(
                stream: wire(of: stream),
                kind: kind.rawValue,
                records: records,
                from: from,
                to: to
            )
            guard
                let known = losses.firstIndex(where: {
                    ($0.stream, $0.kind) == (new.stream, new.kind)
                })
            else { return losses.append(new) }
            losses[known].records += records
            losses[known].from = min(losses[known].from, from)
            losses[known].to = max(losses[known].to, to)
        }
        for loss in stored?.losses ?? [] {
            add(loss.stream, loss.kind, loss.records, loss.from, loss.to)
        }
        for loss in queue.newLosses {
            add(loss.stream, loss.kind, Int(loss.records), wall(loss.from.boot), wall(loss.to.boot))
        }
        return losses
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
        sum.oldestPendingAt = [oldestPendingAt, more.oldestPendingAt].compactMap { $0 }.min()
        sum.lastAttemptAt = [lastAttemptAt, more.lastAttemptAt].compactMap { $0 }.max()
        sum.lastSuccessAt = [lastSuccessAt, more.lastSuccessAt].compactMap { $0 }.max()
        sum.lastError = [lastError, more.lastError].compactMap { $0 }.max { $0.at < $1.at }
        sum.waitsFor = waitsFor ?? more.waitsFor
        sum.resending = [resending, more.resending].compactMap { $0 }.reduce(nil) { ($0 ?? 0) + $1 }
        return sum
    }
}
