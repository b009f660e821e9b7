// The gateway: its parts, and the order in which they start and stop.
import Audio
import Beacons
import CLinux
import Field
import Glibc
import Host
import Intake
import Location
import Queue
import Records
import Setup
import Status
import StatusBoard
import Upload

/// One gateway, from its directories to its health timer.
package final class Gateway: Sendable {
    let settings: GatewaySettings
    let clock: any HostClock
    let board: GatewayBoard
    let queue: Queue
    private let deviceID: String
    private let bootID: String
    private let lock: Descriptor
    private let runtimeLock: Descriptor?
    let clockWatch: ClockMonitor
    private let budget: DayBudget
    private let started: BootInstant
    private let service: ServiceManager
    let signals: GatewaySignals
    /// Signalled when the server has accepted the device and the sources may start.
    let wasEnrolled: Wakeup
    private let sourceWatch: SourceMonitor
    /// The parts that a reload changes.
    let services: Services
    /// Receives the records of other programs.
    let intake: IntakeService
    let door: EarlyControlServer
    /// Writes files to disks other than the queue's, which may hang.
    let aside: Worker
    private let unwritten: InFlightFile
    private let running = StateBox(Running())

    /// The threads and subscriptions that `start` has created.
    private struct Running: Sendable {
        var threads: [StoppableThread] = []
        var health: ReliableTimer?
        var subscriptions: [Subscription] = []
    }

    /// Opens the directories, the lock, the device id and the queue.
    ///
    /// Waits for the disk, and says so in `life`. Throws an error that names what could not be
    /// opened; nothing runs then.
    init(
        _ settings: GatewaySettings,
        clock: any HostClock,
        signals: GatewaySignals,
        door: EarlyControlServer,
        life: Heartbeat
    ) throws {
        self.settings = settings
        self.clock = clock
        self.signals = signals
        self.door = door
        let configuration = settings.configuration
        life.enters("the state directory")
        try configuration.makeDirectories()
        lock = try Self.lock(configuration.stateDirectory)
        runtimeLock = try Self.lockRuntime(configuration)
        door.isOurs()
        try Self.tryDirectories(settings)
        bootID = Self.currentBootID()
        life.enters("SQLite")
        queue = try Self.queue(settings, bootID, clock)
        deviceID = try DeviceID.resolve(
            configuration.deviceID,
            stateDirectory: configuration.stateDirectory,
            copy: queue.remembered(DeviceID.fileName),
            warn: { settings.log.warning("device id", ["why": $0]) }
        )
        if configuration.deviceID == "auto" { queue.remember(DeviceID.fileName, deviceID) }
        board = GatewayBoard { [queue] in
            queue.generation > 0 ? PersistedState(text: queue.remembered(PersistedState.memo)) : nil
        }
        budget = DayBudget(queue, clock: clock)
        let (log, errors) = (settings.log, board.errors)
        clockWatch = try ClockMonitor(
            queue: queue,
            clock: clock,
            contradicted: { contradiction in
                errors.add(Failure(contradiction.summary), at: clock.now())
                log.warning("clock", ["why": contradiction.message])
            }
        )
        started = clock.now()
        unwritten = InFlightFile(
            queue,
            clock: clock,
            directory: configuration.runtimeDirectory,
            bootID: bootID
        )
        service = ServiceManager(environment: settings.environment)
        wasEnrolled = try Wakeup()
        aside = try Worker("metrics", "write of metrics.textfile")
        let context = ServiceContext(
            queue: queue,
            board: board,
            budget: budget,
            clock: clock,
            clockWatch: clockWatch,
            deviceID: deviceID,
            version: settings.version,
            environment: settings.environment,
            log: settings.log
        )
        let wasEnrolled = wasEnrolled
        let services = try Services(context, configuration) { wasEnrolled.signal() }
        self.services = services
        intake = IntakeService(
            directory: configuration.runtimeDirectory,
            sink: EnrolledSink(queue: queue) { services.whyNotCollecting },
            clock: clock
        )
        let queue = queue
        sourceWatch = SourceMonitor(
            board,
            clock: clock,
            patience: service.healthInterval(settings.patience),
            log: settings.log,
            accept: { queue.accept($0) }
        )
    }

    private static func tryDirectories(_ settings: GatewaySettings) throws {
        let configuration = settings.configuration
        do {
            try configuration.tryDirectories()
        } catch {
            // The disk may be full or read-only for now: the queue waits for it, as it would later.
            let isReadOnly = access(configuration.stateDirectory, W_OK) != 0 && errno == EROFS
            guard error.code == .storageFull || isReadOnly else { throw error }
            settings.log.error("storage", ["why": error.description])
        }
    }

    private static func queue(
        _ settings: GatewaySettings,
        _ bootID: String,
        _ clock: any HostClock
    ) throws -> Queue {
        let configuration = settings.configuration
        do {
            return try Queue(
                settings: QueueSettings(
                    configuration,
                    bootID: bootID,
                    clock: clock,
                    version: settings.version
                )
            )
        } catch {
            throw Failure("\(configuration.databasePath): \(error)")
        }
    }

    // MARK: Start and stop

    /// Starts all parts; a separate thread calls `reload` for a new configuration.
    func start(_ life: Heartbeat, _ reload: @escaping @Sendable () throws -> Configuration) throws {
        life.enters("the start of its parts")
        door.enter(
            GatewayActions(
                queue: queue,
                services: services,
                wantsReload: signals.wantsReload,
                collector: collector
            )
        )
        // First, so that no event of this start counts as one the last writer still had to write.
        unwritten.enter()
        accept(.started, ["version": settings.version])
        let subscriptions = observe()
        running.update { $0.subscriptions = subscriptions }
        let clockWatch = clockWatch
        let clockThread = try StoppableThread("clock") { clockWatch.run(until: $0) }
        services.apply(settings.configuration)
        try intake.declare(settings.configuration.userStreams)
        try startControl()
        let reloadThread = try startReloader(reload)
        let health = try ReliableTimer(
            "health",
            grid: TimerGrid(interval: healthInterval),
            clock: clock,
            leeway: .seconds(1),
            handler: healthHandler(supervisor(clockThread, reloadThread, sourceWatch))
        )
        running.update {
            $0.threads = [clockThread, reloadThread]
            $0.health = health
        }
        door.hasStarted()
        settings.log.info(
            "running",
            ["device": deviceID, "state": settings.configuration.stateDirectory]
        )
    }

    /// Half of the patience, so that a hung thread is reported within twice the patience.
    var healthInterval: Duration { service.healthInterval(settings.patience / 2) }

    private func startReloader(
        _ reload: @escaping @Sendable () throws -> Configuration
    ) throws -> StoppableThread {
        let reloader = Reloader(
            services: services,
            intake: intake,
            queue: queue,
            service: service,
            board: board,
            clock: clock,
            log: settings.log,
            read: reload
        )
        let (wantsReload, wasEnrolled) = (signals.wantsReload, wasEnrolled)
        return try StoppableThread("reload") { reloader.run(wantsReload, wasEnrolled, until: $0) }
    }

    /// Stops all parts by `deadline`; returns false if one hangs and could not be stopped.
    func stop(by deadline: BootInstant) -> Bool {
        let configuration = settings.configuration
        let (deviceQueue, unwritten, log) = (queue, unwritten, settings.log)
        let (clock, running) = (clock, running.value)
        let shutdown = Shutdown(
            services: services,
            intake: intake,
            threads: running.threads,
            health: running.health,
            control: door.plane,
            queue: queue,
            status: door.status,
            lastWords: {
                deviceQueue.accept(
                    Event(.stopped, source: "gateway", detail: [], stamp: clock.stamp())
                )
            },
            keep: { Self.keep($0, unwritten, log) },
            keepAll: { unwritten.keepAll() },
            remember: { [board] in board.keep($0, in: deviceQueue) },
            directories: [configuration.stateDirectory, configuration.runtimeDirectory]
        )
        let hasEnded = shutdown.run(log, by: deadline)
        self.running.update { $0.subscriptions = [] }
        return hasEnded
    }

    /// Logs the records that could not be written; the next start records them in the loss ledger.
    private static func keep(_ losses: [Loss], _ unwritten: InFlightFile, _ log: Log) {
        unwritten.keep(losses)
        for loss in losses {
            log.error(
                "lost at the stop, the disk rejects writes",
                ["stream": "\(loss.stream)", "records": "\(loss.records)"]
            )
        }
    }

    static func currentBootID() -> String {
        SmallText.read("/proc/sys/kernel/random/boot_id")?
            .split(whereSeparator: \.isWhitespace).first.map { String($0) } ?? "unknown"
    }

    /// Locks the state directory for one daemon: two writers would contradict each other.
    static func lock(_ directory: String) throws -> Descriptor {
        try lock(directory, or: "this state directory; `waypost status` shows it")
    }

    /// Locks the directory itself, which works on a full disk, too.
    private static func lock(_ directory: String, or refusal: String) throws -> Descriptor {
        let lock = try Descriptor(opening: directory, O_RDONLY | O_DIRECTORY)
        guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
            throw Failure("\(directory): another waypost runs with \(refusal)")
        }
        return lock
    }

    /// Locks the runtime directory for one daemon.
    ///
    /// A second one would take over the sockets and record this one's losses as its own. Returns
    /// nil if it is the state directory, which is locked already.
    private static func lockRuntime(_ configuration: Configuration) throws -> Descriptor? {
        let directory = configuration.runtimeDirectory
        var (state, runtime) = (stat(), stat())
        if stat(configuration.stateDirectory, &state) == 0, stat(directory, &runtime) == 0,
            (state.st_dev, state.st_ino) == (runtime.st_dev, runtime.st_ino)
        {
            return nil
        }
        return try lock(
            directory,
            or: "this runtime directory; set runtime_directory to another one"
        )
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

    /// Makes a collector of the present status; after a reload, of the new configuration.
    private var collector: @Sendable () -> StatusCollector {
        let (board, queue, clock, clockWatch, budget) = (board, queue, clock, clockWatch, budget)
        let (deviceID, bootID, started, services) = (deviceID, bootID, started, services)
        let version = settings.version
        let trouble = memoryTrouble(settings.configuration.stateDirectory, currentMounts())
        return {
            StatusCollector(
                board: board,
                queue: queue,
                clock: clock,
                clockState: { clockWatch.current },
                configuration: services.configuration,
                deviceID: deviceID,
                version: version,
                bootID: bootID,
                started: started,
                nextSync: { services.uploads?.nextSync },
                budget: budget,
                memoryTrouble: trouble
            )
        }
    }

    /// Returns the work of one health tick: checks every thread and source, and starts the purge.
    ///
    /// It waits at most a second for the disk, and for another thread only while a part restarts.
    private func healthHandler(_ supervisor: Supervisor) -> @Sendable () -> Void {
        let (queue, services, sourceWatch) = (queue, services, sourceWatch)
        let (status, isWell, log, clock) = (door.status, signals.isWell, settings.log, clock)
        let (aside, unwritten, board) = (aside, unwritten, board)
        let led = LEDFile(runtimeDirectory: settings.configuration.runtimeDirectory)
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
            unwritten.look()
            let report = status.fresh(within: .seconds(1))
            board.keep(report, in: queue)
            files.writeSnapshot(report)
            let isEnrolled = services.whyNotCollecting == nil
            led.write(LEDPattern(report.state, isEnrolled: isEnrolled), services.configuration.led)
            if let metrics = services.configuration.metricsTextfile {
                let now = clock.stamp()
                aside.perform { files.write(metrics, of: report, at: now) }
            }
            log.debug(
                "queue",
                report.streams.mapValues { "\($0.pending) wait, \($0.uploaded) uploaded" }
            )
        }
    }

    private func startControl() throws {
        try door.open()
        guard let control = door.plane else { return }
        var subscriptions = board.sources.values.map { $0.subscribe { _ in control.changed() } }
        subscriptions.append(board.upload.subscribe { _ in control.changed() })
        subscriptions.append(queue.storage.subscribe { _ in control.changed() })
        subscriptions.append(clockWatch.board.subscribe { _ in control.changed() })
        running.update { [subscriptions] in $0.subscriptions += subscriptions }
    }
}
