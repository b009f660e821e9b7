// Writes changes of the status board to the log and the list of recent errors.
import Host
import Queue
import Records
import Remote
import Status
import StatusBoard
import Upload

extension Gateway {
    /// Subscribes to all states of the board; ends when the result is released.
    func observe() -> [Subscription] {
        context.board.sources.map { reportOpening($0.key, $0.value) }
            + [
                reportUploadFailures(), reportSyncs(), reportStorage(), wakeSchedule(), offerJobs(),
                tallyUploads(),
            ]
    }

    /// Counts the uploads for `waypost measure`.
    private func tallyUploads() -> Subscription {
        let tally = context.board.uploadTally
        return context.board.upload.subscribe { state in
            if let report = state.value { tally.update { $0.receive(report) } }
        }
    }

    /// Passes on the server's offers of jobs.
    private func offerJobs() -> Subscription {
        let jobs = context.jobs
        return context.board.upload.subscribe { state in
            if let tag = state.value?.jobs { jobs?.offer(tag) }
        }
    }

    /// Has the schedules looked at after each step and sync of the clock.
    private func wakeSchedule() -> Subscription {
        let schedule = context.schedule
        return context.clockWatch.board.subscribe { _ in schedule.hasChanged.signal() }
    }

    /// Logs each device that a source opens (`debug`).
    private func reportOpening(
        _ name: SourceName,
        _ source: Publisher<SourceReport>
    ) -> Subscription {
        let (log, open) = (context.log, StateBox(""))
        return source.subscribe { state in
            switch state {
            case .unknown: break
            case .loading, .error: open.update { $0 = "" }
            case .loaded(let report):
                guard open.replace(with: report.device) != report.device else { return }
                log.debug(name.rawValue, ["open": report.device, "doing": report.detail])
            }
        }
    }

    /// Logs each sync (`debug`), and stores its dates for the next start.
    private func reportSyncs() -> Subscription {
        let (context, status, isSyncing) = (context, door.status, StateBox(false))
        return context.board.upload.subscribe { state in
            guard case .loaded(let report) = state else { return }
            let isUploading = report.phase == .uploading
            guard isSyncing.replace(with: isUploading), !isUploading else { return }
            // The dates are stored with the commit that ends the sync.
            context.board.keep(status.report(), in: context.queue)
            let uploaded = report.streams.values.reduce(0) { $0 + $1.uploaded }
            context.log.debug(
                "sync",
                [
                    "then": report.phase.rawValue, "uploaded since the start": "\(uploaded)",
                    "bytes since the start": "\(report.bytesSent)",
                ]
            )
        }
    }

    private func reportUploadFailures() -> Subscription {
        let (context, seen) = (context, StateBox([Stream: TimedFailure]()))
        let errors = context.board.errors
        return context.board.upload.subscribe { state in
            // The uploader itself failed: the supervisor, or the failed start, published why.
            if case .error(let failure, _) = state { errors.add(failure, at: context.clock.now()) }
            for (stream, upload) in state.value?.streams ?? [:] {
                guard let failure = upload.lastError, seen.value[stream] != failure else {
                    continue
                }
                seen.update { $0[stream] = failure }
                errors.add(failure.failure, at: failure.at.boot)
                context.log.warning(
                    "upload failed",
                    ["stream": "\(stream)", "why": failure.failure.description]
                )
            }
        }
    }

    private func reportStorage() -> Subscription {
        let (log, errors) = (context.log, context.board.errors)
        let (clock, queue) = (context.clock, context.queue)
        let level = StateBox("ok")
        let reported = StateBox([String: BootInstant]())
        return queue.storage.subscribe { state in
            switch state {
            case .error(let failure, _):
                errors.add(failure, at: clock.now())
                log.error("storage", ["why": failure.description])
            case .loaded(let report):
                let now = Self.level(report)
                guard level.replace(with: now) != now else { return }
                guard report.level != .ok else { return log.info("storage", ["level": "ok"]) }
                log.warning("storage", ["why": report.detail])
                if Self.isNew(now, in: reported, at: clock.now()) {
                    queue.accept(Self.event(report, at: clock.stamp()))
                }
                guard report.level != .low else { return }
                errors.add(Failure(report.detail, code: .storageFull), at: clock.now())
            case .unknown, .loading: break
            }
        }
    }

    /// The level in events, where a disk that others fill is full, too.
    private static func level(_ report: StorageReport) -> String {
        report.isFull ? StorageLevel.full.rawValue : report.level.rawValue
    }

    /// Limits events of a level that comes and goes to one per hour.
    private static func isNew(
        _ level: String,
        in reported: StateBox<[String: BootInstant]>,
        at now: BootInstant
    ) -> Bool {
        reported.update { reported in
            if let last = reported[level], now - last < .seconds(3600) { return false }
            reported[level] = now
            return true
        }
    }

    private static func event(_ report: StorageReport, at stamp: Stamp) -> Event {
        var detail: [(key: String, value: EventValue)] = [
            ("level", .text(level(report))), ("why", .text(report.detail)),
            // At `max_size` there may be much free space.
            report.level == .full
                ? ("database_bytes", .integer(report.room.fileBytes))
                : ("free_bytes", .integer(report.room.free)),
        ]
        if report.level != .low { detail.append(("code", .text(ErrorCode.storageFull.rawValue))) }
        return Event(.storageLow, source: "storage", detail: detail, stamp: stamp)
    }
}
