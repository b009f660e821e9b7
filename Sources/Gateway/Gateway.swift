// The gateway as a schematic: what runs, in which order it starts and stops.
internal import Audio
internal import Beacons
internal import Board
internal import CLinux
internal import Glibc
package import Host
internal import Location
internal import Queue
internal import Streams
internal import Upload

/// What a gateway is started with.
package struct GatewaySettings: Sendable {
    package var configuration: Configuration
    package var environment: [String: String]
    package var version: String
    package var log: Log

    package init(
        configuration: Configuration,
        environment: [String: String],
        version: String,
        log: Log
    ) {
        self.configuration = configuration
        self.environment = environment
        self.version = version
        self.log = log
    }
}

/// What a reload replaces.
private struct Live: Sendable {
    var configuration: Configuration
    var works: Works?
}

/// One running gateway.
package final class Gateway {
    private var settings: GatewaySettings
    private let clock: any HostClock
    private let board: GatewayBoard
    private let queue: Queue
    private let deviceID: String
    private let bootID: String
    private let lock: Descriptor
    private let clockWatch: ClockWatch
    private let started: BootInstant
    private let service: ServiceManager
    private let wantsReload: Wakeup
    /// The writer answered: the one who runs everything may tell the watchdog so.
    private let writerAnswered: Wakeup
    private let sourceWatch: SourceWatch
    /// What is restarted by a reload.
    private let live: StateBox<Live>
    /// Records of other programs.
    private let intake: Intake
    private let status: StatusPublication
    private var control: ControlPlane?
    private var clockLane: StoppableLane?
    private var health: ReliableTimer?
    private var subscriptions: [Subscription] = []

    static func databasePath(_ stateDirectory: String) -> String {
        "\(stateDirectory)/queue.sqlite"
    }

    package static func socketPath(_ configuration: Configuration) -> String {
        "\(configuration.runtimeDirectory)/control.sock"
    }

    /// Opens what everything needs: directories, the lock, the device id, the queue.
    ///
    /// Throws a Failure that names what could not be had; nothing runs then.
    package init(_ settings: GatewaySettings, clock: any HostClock = SystemClock()) throws {
        self.settings = settings
        self.clock = clock
        let configuration = settings.configuration
        do {
            try configuration.prepareDirectories()
        } catch {
            // A disk that is full or read-only for now: the queue waits for it, as it would later.
            let isReadOnly = access(configuration.stateDirectory, W_OK) != 0 && errno == EROFS
            guard error.code == .storageFull || isReadOnly else { throw error }
            settings.log.error("storage", ["why": error.description])
        }
        lock = try Self.lock(configuration.stateDirectory)
        deviceID = try DeviceID.resolve(
            configuration.deviceID,
            stateDirectory: configuration.stateDirectory
        )
        bootID = Self.currentBootID()
        let path = Self.databasePath(configuration.stateDirectory)
        do {
            queue = try Queue(
                settings: QueueSettings(
                    configuration,
                    bootID: bootID,
                    clock: clock,
                    version: settings.version
                )
            )
        } catch {
            throw Failure("\(path): \(error)")
        }
        board = GatewayBoard(past: Past(text: queue.remembered(Past.memo)))
        clockWatch = try ClockWatch(queue: queue, clock: clock)
        started = clock.now()
        let live = StateBox(Live(configuration: configuration, works: nil))
        self.live = live
        intake = Intake(
            directory: configuration.runtimeDirectory,
            sink: EnrolledSink(queue: queue) { live.value.configuration.whyNotCollecting },
            clock: clock
        )
        status = try Self.publication(
            live: live,
            StatusContext(
                board: board,
                queue: queue,
                clock: clock,
                clockWatch: clockWatch,
                deviceID: deviceID,
                version: settings.version,
                bootID: bootID,
                started: started
            )
        )
        service = ServiceManager(environment: settings.environment)
        wantsReload = try Wakeup()
        writerAnswered = try Wakeup()
        let queue = queue
        sourceWatch = SourceWatch(
            board,
            clock: clock,
            patience: service.healthInterval,
            log: settings.log
        ) { queue.accept($0) }
    }

    /// Runs until SIGTERM or SIGINT; SIGHUP calls `reload` for a new configuration (nil: keep the old one).
    ///
    /// `signals` is a descriptor of `waypost_take_signals`.
    package func run(signals: Int32, reload: () -> Configuration?) throws {
        try start()
        service.notify("READY=1")
        settings.log.info(
            "running",
            ["device": deviceID, "state": settings.configuration.stateDirectory]
        )
        StartUpMemory.release()
        loop: while true {
            var entries = [
                PollEntry(signals), PollEntry(wantsReload.descriptor),
                PollEntry(writerAnswered.descriptor),
            ]
            _ = wait(for: &entries)
            wantsReload.clear()
            if entries[2].isReady {
                writerAnswered.clear()
                service.notify("WATCHDOG=1")
            }
            let signal = waypost_next_signal(signals)
            switch signal {
            case SIGTERM, SIGINT: break loop
            case 0 where !entries[1].isReady: continue
            default: reconfigure(reload())
            }
        }
        service.notify("STOPPING=1")
        stop()
    }

    // MARK: Start and stop

    private func start() throws {
        accept(.started, ["version": settings.version])
        enterLosses()
        observe()
        let clockWatch = clockWatch
        clockLane = try StoppableLane("clock") { clockWatch.run(until: $0) }
        let works = try Works(context, configuration: settings.configuration)
        live.update { $0.works = works }
        try intake.declare(settings.configuration.userStreams)
        try startControl()
        health = try ReliableTimer(
            "health",
            grid: TimerGrid(interval: service.healthInterval),
            clock: clock,
            leeway: .seconds(1),
            handler: healthHandler()
        )
    }

    /// In the reverse order: first what makes records, last what keeps them.
    private func stop() {
        live.value.works?.stop()
        live.update { $0.works = nil }
        intake.stop()
        clockLane?.stop()
        accept(.stopped, [:])
        // What came last is counted, and then what has to give way for it.
        for _ in 0..<2 { _ = try? queue.flushed() }
        let report = status.fresh(within: .seconds(1))
        queue.remember(Past.memo, Past(report).text)
        let snapshot = report.json
        health?.cancel()
        control?.stop()
        status.stop()
        keep(queue.close())
        subscriptions = []
        Snapshot.write(snapshot, to: settings.configuration.stateDirectory)
        Snapshot.write(snapshot, to: settings.configuration.runtimeDirectory)
        settings.log.info("stopped", [:])
    }

    /// What the disk took no more is told now, and entered by the next start.
    private func keep(_ losses: [Loss]) {
        let directory = settings.configuration.runtimeDirectory
        UnenteredLosses.keep(losses, in: directory, bootID: bootID)
        for loss in losses {
            settings.log.error(
                "lost at the stop, the disk refuses",
                ["stream": "\(loss.stream)", "records": "\(loss.records)"]
            )
        }
    }

    /// Enters what a gateway before this one could not.
    private func enterLosses() {
        let directory = settings.configuration.runtimeDirectory
        let found = UnenteredLosses.found(in: directory, bootID: bootID, queue.streams)
        guard !found.isEmpty else { return }
        for loss in found { queue.note(loss) }
        // Kept for a later start where the disk still refuses.
        if (try? queue.flushed()) != nil { UnenteredLosses.remove(in: directory) }
    }

    private func reconfigure(_ configuration: Configuration?) {
        guard let configuration else { return }
        service.notify("RELOADING=1")
        live.value.works?.stop()
        // The queue stays where it is: the directories are fixed for a process's life.
        var kept = configuration
        kept.stateDirectory = settings.configuration.stateDirectory
        kept.runtimeDirectory = settings.configuration.runtimeDirectory
        settings.configuration = kept
        queue.limit(StorageLimits(kept.storage))
        do {
            let works = try Works(context, configuration: kept)
            live.update { $0 = Live(configuration: kept, works: works) }
            queue.declare(kept.queueStreams)
            try intake.declare(kept.userStreams)
            settings.log.info("configuration reloaded", [:])
        } catch {
            settings.log.error("reload failed", ["why": "\(error)"])
        }
        service.notify("READY=1")
    }

    private var context: WorksContext {
        WorksContext(
            queue: queue,
            board: board,
            clock: clock,
            clockWatch: clockWatch,
            deviceID: deviceID,
            version: settings.version,
            environment: settings.environment,
            log: settings.log
        )
    }

    static func currentBootID() -> String {
        SmallText.read("/proc/sys/kernel/random/boot_id")?
            .split(whereSeparator: \.isWhitespace).first.map { String($0) } ?? "unknown"
    }

    /// One daemon a state directory: two writers would be two truths.
    static func lock(_ directory: String) throws -> Descriptor {
        // The directory itself, which can be locked on a disk that takes no new file, too.
        let number = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw Failure("\(SystemError.last("open", on: directory))") }
        let lock = Descriptor(owning: number)
        guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
            throw Failure(
                "\(directory): another waypost runs with this state directory; `waypost status` shows it"
            )
        }
        return lock
    }

    private func accept(_ kind: EventKind, _ detail: [String: String]) {
        queue.accept(
            Event(
                kind,
                source: "gateway",
                detail: detail.map { ($0.key, .text($0.value)) },
                stamp: clock.stamp()
            )
        )
    }

    // MARK: Health

    /// What does not change while a gateway runs.
    private struct StatusContext: Sendable {
        let board: GatewayBoard
        let queue: Queue
        let clock: any HostClock
        let clockWatch: ClockWatch
        let deviceID: String
        let version: String
        let bootID: String
        let started: BootInstant
    }

    /// Tells what is now: after a reload, of the new configuration.
    private static func publication(
        live: StateBox<Live>,
        _ context: StatusContext
    ) throws -> StatusPublication {
        let collector = { @Sendable in
            let now = live.value
            return StatusCollector(
                board: context.board,
                queue: context.queue,
                clock: context.clock,
                clockState: { context.clockWatch.current },
                configuration: now.configuration,
                deviceID: context.deviceID,
                version: context.version,
                bootID: context.bootID,
                started: context.started,
                nextSync: { now.works?.nextSync }
            )
        }
        return try StatusPublication(
            clock: context.clock,
            gather: { collector().gather() },
            compose: { collector().report($0, waiting: $1) }
        )
    }

    /// The one health timer: the clock, the sources, the watchdog, what may be purged, the snapshot.
    private func healthHandler() -> @Sendable () -> Void {
        let (queue, clockWatch, sourceWatch) = (queue, clockWatch, sourceWatch)
        let writerAnswered = writerAnswered
        let status = status
        let live = live
        let clock = clock
        let files = HealthFiles(
            settings.configuration.runtimeDirectory,
            errors: board.errors,
            log: settings.log
        )
        return {
            clockWatch.check()
            live.value.works?.checkSources()
            sourceWatch.check()
            // The watchdog hears of us only while the writer answers, if only that its disk refuses: records
            // wait in memory then, and a restart would lose them. It is the main thread that tells it.
            let retention = live.value.configuration.storage.retention
            _ = try? queue.perform { _ in }
            writerAnswered.signal()
            queue.purge(retention: retention)
            queue.checkStorage()
            let report = status.fresh(within: .seconds(1))
            queue.remember(Past.memo, Past(report).text)
            let metrics = live.value.configuration.metricsTextfile
            files.write(report, metrics: metrics, at: clock.wall())
            StartUpMemory.release()
        }
    }

    private func startControl() throws {
        let (live, wantsReload) = (live, wantsReload)
        try status.start()
        let control = try ControlPlane(
            path: Self.socketPath(settings.configuration),
            status: status,
            queue: queue,
            actions: ControlActions(
                sync: { done in
                    guard let uploader = live.value.works?.uploader else { return done(nil) }
                    uploader.sync { done(.init(left: $0.left, quarantined: $0.quarantined)) }
                },
                reload: { wantsReload.signal() },
                restart: { source in
                    guard let works = live.value.works else { return "the gateway stops" }
                    return works.restart(source)
                },
                configuration: { live.value.configuration }
            )
        )
        self.control = control
        for publisher in board.sources.values {
            subscriptions.append(publisher.subscribe { _ in control.changed() })
        }
        subscriptions.append(board.upload.subscribe { _ in control.changed() })
        subscriptions.append(queue.storage.subscribe { _ in control.changed() })
        subscriptions.append(clockWatch.board.subscribe { _ in control.changed() })
    }

    /// Follows uploads and storage for the log and the list of recent errors.
    private func observe() {
        let (log, errors, clock) = (settings.log, board.errors, clock)
        let seen = StateBox([Stream: TimedFailure]())
        subscriptions.append(
            board.upload.subscribe { state in
                for (stream, upload) in state.value?.streams ?? [:] {
                    guard let failure = upload.lastError, seen.value[stream] != failure else {
                        continue
                    }
                    seen.update { $0[stream] = failure }
                    errors.add(failure.failure, at: failure.at.wall)
                    log.warning(
                        "upload failed",
                        ["stream": "\(stream)", "why": failure.failure.description]
                    )
                }
            }
        )
        let phase = StateBox(UploadReport.Phase.idle)
        let (queue, status) = (queue, status)
        subscriptions.append(
            board.upload.subscribe { state in
                let now = state.value?.phase ?? .idle
                let before = phase.update { last in
                    defer { last = now }
                    return last
                }
                // The dates of a sync go with what it commits at its end.
                guard before == .uploading, now != .uploading else { return }
                queue.remember(Past.memo, Past(status.report()).text)
            }
        )
        let level = StateBox(StorageLevel.ok)
        subscriptions.append(
            queue.storage.subscribe { state in
                switch state {
                case .error(let failure, _):
                    errors.add(failure, at: clock.wall())
                    log.error("storage", ["why": failure.description])
                case .loaded(let report):
                    guard
                        level.update({ last in
                            defer { last = report.level }
                            return last != report.level
                        })
                    else { return }
                    guard report.level != .ok else { return log.info("storage", ["level": "ok"]) }
                    log.warning("storage", ["why": report.detail])
                    if report.level != .low {
                        errors.add(
                            Failure(report.detail, code: .storageFull),
                            at: clock.wall()
                        )
                    }
                case .unknown, .loading: break
                }
            }
        )
    }
}
