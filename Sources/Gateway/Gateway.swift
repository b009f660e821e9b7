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
    /// Without a sign of life for so long a thread hangs; for ten times as long, and systemd restarts us.
    package var patience = Duration.seconds(30)

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

/// One running gateway.
package final class Gateway {
    let settings: GatewaySettings
    let clock: any HostClock
    let board: GatewayBoard
    let queue: Queue
    private let deviceID: String
    private let bootID: String
    private let lock: Descriptor
    let clockWatch: ClockWatch
    private let started: BootInstant
    private let service: ServiceManager
    private let wantsReload: Wakeup
    /// The server has accepted the device: the sources may start.
    let wasEnrolled: Wakeup
    /// All parts were judged, and none is lost: the main thread may tell the watchdog so.
    private let isWell: Wakeup
    private let sourceWatch: SourceWatch
    /// What a reload changes.
    let services: Services
    /// Records of other programs.
    let intake: Intake
    let status: StatusPublication
    private(set) var control: ControlPlane?
    private var threads: [StoppableThread] = []
    private var health: ReliableTimer?
    private var subscriptions: [Subscription] = []

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
        let path = configuration.databasePath
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
        service = ServiceManager(environment: settings.environment)
        wantsReload = try Wakeup()
        wasEnrolled = try Wakeup()
        isWell = try Wakeup()
        let context = ServiceContext(
            queue: queue,
            board: board,
            clock: clock,
            clockWatch: clockWatch,
            deviceID: deviceID,
            version: settings.version,
            environment: settings.environment,
            log: settings.log
        )
        let wasEnrolled = wasEnrolled
        let services = Services(context, configuration) { wasEnrolled.signal() }
        self.services = services
        intake = Intake(
            directory: configuration.runtimeDirectory,
            sink: EnrolledSink(queue: queue) { services.whyNotCollecting },
            clock: clock
        )
        status = try Self.publication(
            of: services,
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
        let queue = queue
        sourceWatch = SourceWatch(
            board,
            clock: clock,
            patience: service.healthInterval(settings.patience),
            log: settings.log
        ) { queue.accept($0) }
    }

    /// Runs until SIGTERM or SIGINT; SIGHUP calls `reload` for a new configuration (nil: keep the old one).
    ///
    /// `signals` is a descriptor of `waypost_take_signals`; `reload` is called on a thread of its own. False when
    /// some thread hangs that could not be ended: the process is to be left by `_exit`.
    @discardableResult package func run(
        signals: Int32,
        reload: @escaping @Sendable () -> Configuration?
    ) throws -> Bool {
        try start(reload)
        service.notify("READY=1")
        settings.log.info(
            "running",
            ["device": deviceID, "state": settings.configuration.stateDirectory]
        )
        // Nothing here waits for anything else: a stop is heard whatever hangs.
        loop: while true {
            var entries = [PollEntry(signals), PollEntry(isWell.descriptor)]
            _ = wait(for: &entries)
            if entries[1].isReady {
                isWell.clear()
                service.notify("WATCHDOG=1")
            }
            switch waypost_next_signal(signals) {
            case SIGTERM, SIGINT: break loop
            case SIGHUP: wantsReload.signal()
            default: continue
            }
        }
        service.notify("STOPPING=1")
        return stop()
    }

    // MARK: Start and stop

    private func start(_ reload: @escaping @Sendable () -> Configuration?) throws {
        accept(.started, ["version": settings.version])
        enterLosses()
        subscriptions += observe()
        let clockWatch = clockWatch
        let clockLane = try StoppableThread("clock") { clockWatch.run(until: $0) }
        services.apply(settings.configuration)
        try intake.declare(settings.configuration.userStreams)
        try startControl()
        let reloader = Reloader(
            services: services,
            intake: intake,
            queue: queue,
            service: service,
            board: board,
            log: settings.log,
            read: reload
        )
        let (wantsReload, wasEnrolled) = (wantsReload, wasEnrolled)
        let reloadLane = try StoppableThread("reload") {
            reloader.run(wantsReload, wasEnrolled, until: $0)
        }
        threads = [clockLane, reloadLane]
        health = try ReliableTimer(
            "health",
            grid: TimerGrid(interval: service.healthInterval(settings.patience)),
            clock: clock,
            leeway: .seconds(1),
            handler: healthHandler(supervisor(clockLane, reloadLane))
        )
    }

    /// False when something hangs and could not be ended.
    private func stop() -> Bool {
        let configuration = settings.configuration
        let (deviceQueue, bootID, log) = (queue, bootID, settings.log)
        let clock = clock
        let shutdown = Shutdown(
            services: services,
            intake: intake,
            threads: threads,
            health: health,
            control: control,
            queue: queue,
            status: status,
            lastWords: {
                deviceQueue.accept(
                    Event(.stopped, source: "gateway", detail: [], stamp: clock.stamp())
                )
            },
            keep: { Self.keep($0, configuration, bootID, log) },
            directories: [configuration.stateDirectory, configuration.runtimeDirectory]
        )
        let hasEnded = shutdown.run(log)
        subscriptions = []
        log.info("stopped", [:])
        return hasEnded
    }

    /// What the disk took no more is told now, and entered by the next start.
    private static func keep(
        _ losses: [Loss],
        _ configuration: Configuration,
        _ bootID: String,
        _ log: Log
    ) {
        UnenteredLosses.keep(losses, in: configuration.runtimeDirectory, bootID: bootID)
        for loss in losses {
            log.error(
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
        of services: Services,
        _ context: StatusContext
    ) throws -> StatusPublication {
        let collector = { @Sendable in
            StatusCollector(
                board: context.board,
                queue: context.queue,
                clock: context.clock,
                clockState: { context.clockWatch.current },
                configuration: services.configuration,
                deviceID: context.deviceID,
                version: context.version,
                bootID: context.bootID,
                started: context.started,
                nextSync: { services.uploads?.nextSync }
            )
        }
        return try StatusPublication(
            clock: context.clock,
            gather: { collector().gather() },
            compose: { collector().report($0, waiting: $1) }
        )
    }

    /// The one health timer: judges every thread, has the sources looked at, and asks the queue to tidy up.
    ///
    /// Nothing here waits for the disk for longer than a second, nor for another thread but what a recovery takes.
    private func healthHandler(_ supervisor: Supervisor) -> @Sendable () -> Void {
        let (queue, services, sourceWatch) = (queue, services, sourceWatch)
        let (status, isWell, log, clock) = (status, isWell, settings.log, clock)
        let files = HealthFiles(
            settings.configuration.runtimeDirectory,
            errors: board.errors,
            log: log
        )
        return {
            let isGood = supervisor.check()
            sourceWatch.check()
            queue.purge(retention: services.configuration.storage.retention)
            if isGood { isWell.signal() }
            let report = status.fresh(within: .seconds(1))
            queue.remember(Past.memo, Past(report).text)
            let metrics = services.configuration.metricsTextfile
            files.write(report, metrics: metrics, at: clock.wall())
            log.debug(
                "queue",
                report.streams.mapValues { "\($0.pending) wait, \($0.uploaded) uploaded" }
            )
        }
    }

    private func startControl() throws {
        let (services, wantsReload) = (services, wantsReload)
        try status.start()
        let control = try ControlPlane(
            path: settings.configuration.socketPath,
            status: status,
            queue: queue,
            actions: ControlActions(
                sync: { done in
                    guard let uploader = services.uploads?.uploader else { return done(nil) }
                    uploader.sync { done(.init(left: $0.left, quarantined: $0.quarantined)) }
                },
                reload: { wantsReload.signal() },
                restart: { services.restart($0) },
                configuration: { services.configuration }
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
}
