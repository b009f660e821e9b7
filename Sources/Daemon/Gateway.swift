// The gateway: its parts, and the order in which they start and stop.
import Audio
import CLinux
import Glibc
import Host
import Intake
import Listen
import Queue
import Records
import Remote
import Setup
import Status
import StatusBoard
import Upload

/// One gateway, from its directories to its health timer.
package final class Gateway: Sendable {
    let settings: GatewaySettings
    let context: ServiceContext
    private let bootID: String
    private let lock: Descriptor
    private let runtimeLock: Descriptor?
    let started: BootInstant
    private let service: ServiceManager
    let signals: GatewaySignals
    let sourceWatch: SourceMonitor
    /// The parts that a reload changes.
    let services: Services
    /// Receives the records of other programs.
    let intake: IntakeService
    /// Receives the messages of an MQTT broker.
    let subscriber: SubscriberService
    /// Gives the recording to programs that listen.
    let listen: ListenService
    let door: EarlyControlServer
    /// Writes files to disks other than the queue's, which may hang.
    let aside: Worker
    let unwritten: InFlightFile
    let running = StateBox(Running())

    /// The threads and subscriptions that `start` has created.
    struct Running: Sendable {
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
        (self.settings, self.signals, self.door) = (settings, signals, door)
        let configuration = settings.configuration
        life.enters("the state directory")
        try configuration.makeDirectories()
        lock = try Self.lock(configuration.stateDirectory)
        runtimeLock = try Self.lockRuntime(configuration)
        door.isOurs()
        try Self.tryDirectories(settings)
        bootID = Self.currentBootID()
        life.enters("SQLite")
        let queue = try Self.queue(settings, bootID, clock)
        let deviceID = try DeviceID.resolve(
            configuration.deviceID,
            stateDirectory: configuration.stateDirectory,
            copy: queue.remembered(DeviceID.fileName),
            warn: { settings.log.warning("device id", ["why": $0]) }
        )
        if configuration.deviceID == "auto" { queue.remember(DeviceID.fileName, deviceID) }
        let board = GatewayBoard {
            queue.generation > 0 ? PersistedState(text: queue.remembered(PersistedState.memo)) : nil
        }
        let (log, errors) = (settings.log, board.errors)
        let clockWatch = try ClockMonitor(
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
        aside = try Worker("metrics", "write of metrics.textfile")
        context = ServiceContext(
            queue: queue,
            board: board,
            budget: DayBudget(queue, clock: clock),
            clock: clock,
            clockWatch: clockWatch,
            schedule: try SourceSchedule(queue, board, clock: clock, log: settings.log),
            deviceID: deviceID,
            version: settings.version,
            environment: settings.environment,
            log: settings.log,
            sound: try AudioTap(),
            jobs: try OfferedJobs(),
            keepsEffort: configuration.effort.isEnabled
        )
        if !configuration.effort.isEnabled { queue.forgetEffort() }
        listen = ListenService(context, directory: configuration.runtimeDirectory)
        let services = Services(context, configuration) { signals.wasEnrolled.signal() }
        self.services = services
        intake = IntakeService(
            directory: configuration.runtimeDirectory,
            sink: ProgramSink(queue: queue, live: context.live) { services.whyNotCollecting },
            clock: clock
        )
        subscriber = SubscriberService(
            sink: queue,
            context: SubscriberContext(
                board: board,
                clock: clock,
                environment: settings.environment,
                log: settings.log
            ) { services.whyNotCollecting ?? queue.fullRefusal?.description },
            deviceID: deviceID
        )
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
                queue: context.queue,
                services: services,
                wantsReload: signals.wantsReload,
                collector: collector,
                figures: figures
            )
        )
        // First, so that no event of this start counts as one the last writer still had to write.
        unwritten.enter()
        accept(.started, [("version", .text(settings.version))])
        context.recordSettings(settings.configuration)
        let subscriptions = observe()
        running.update { $0.subscriptions = subscriptions }
        let clockWatch = context.clockWatch
        let clockThread = try StoppableThread("clock") { clockWatch.run(until: $0) }
        services.apply(settings.configuration)
        let sources = services
        let scheduleThread = try StoppableThread("schedule") { sources.followSchedules(until: $0) }
        try intake.declare(settings.configuration.userStreams)
        try subscriber.declare(settings.configuration)
        listen.declare(isEnabled: settings.configuration.audio.isEnabled)
        try startControl()
        let reloader = Reloader(
            services: services,
            intake: intake,
            subscriber: subscriber,
            listen: listen,
            context: context,
            service: service,
            signals: signals,
            read: reload
        )
        let reloadThread = try StoppableThread("reload") { reloader.run(until: $0) }
        let remoteThread = try startRemote()
        let health = try ReliableTimer(
            "health",
            grid: TimerGrid(interval: healthInterval),
            clock: context.clock,
            leeway: .seconds(1),
            handler: healthHandler(
                supervisor(clockThread, reloadThread, scheduleThread, remoteThread)
            )
        )
        running.update {
            $0.threads = [clockThread, reloadThread, scheduleThread, remoteThread]
            $0.health = health
        }
        door.hasStarted()
        context.log.info(
            "running",
            ["device": context.deviceID, "state": settings.configuration.stateDirectory]
        )
    }

    /// Starts the thread that does the server's jobs.
    private func startRemote() throws -> StoppableThread {
        let (context, status, doctor) = (context, door.status, settings.doctor)
        let jobs = GatewayJobs(context: context, services: services, status: status, doctor: doctor)
        let offers = try context.jobs ?? OfferedJobs()
        let device = GatewaySettingsDevice(
            context: context,
            services: services,
            wantsReload: signals.wantsReload,
            directory: settings.configuration.stateDirectory,
            trying: settings.trying
        )
        let paths = UpgradePaths(runtimeDirectory: settings.configuration.runtimeDirectory)
        let upgrades = GatewayUpgradeDevice(gateway: device, paths: paths)
        return try StoppableThread("remote") { stop in
            let trial = SettingsTrial(device, context.clock)
            var runner = JobRunner(
                context.queue,
                context.clock,
                offers,
                jobs,
                settings: trial,
                upgrade: UpgradeTrial(upgrades, context.clock)
            )
            runner.run(until: stop)
        }
    }

    /// Half of the patience, so that a hung thread is reported within twice the patience.
    var healthInterval: Duration { service.healthInterval(settings.patience / 2) }

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

    func accept(_ kind: EventKind, _ detail: [(key: String, value: EventValue)] = []) {
        let stamp = context.clock.stamp()
        context.queue.accept(Event(kind, source: "gateway", detail: detail, stamp: stamp))
    }

    // MARK: Health

    /// Makes a collector of the present status; after a reload, of the new configuration.
    private var collector: @Sendable () -> StatusCollector {
        let (context, bootID, started, services) = (context, bootID, started, services)
        let trouble = memoryWarning(settings.configuration.stateDirectory, currentMounts())
        return {
            StatusCollector(
                board: context.board,
                queue: context.queue,
                clock: context.clock,
                clockState: { context.clockWatch.current },
                configuration: services.configuration,
                deviceID: context.deviceID,
                version: context.version,
                bootID: bootID,
                started: started,
                nextSync: { services.uploads?.nextSync },
                outputs: { services.outputs },
                budget: context.budget,
                memoryWarning: trouble
            )
        }
    }

    /// Returns the work of one health tick: checks every thread and source, and starts the purge.
    ///
    /// It waits at most a second for the disk, and for another thread only while a part restarts.
    private func healthHandler(_ supervisor: Supervisor) -> @Sendable () -> Void {
        let (context, services, sourceWatch, status) = (context, services, sourceWatch, door.status)
        let (isWell, aside, unwritten) = (signals.isWell, aside, unwritten)
        let directory = settings.configuration.runtimeDirectory
        let led = LEDFile(runtimeDirectory: directory)
        let files = HealthFiles(directory, errors: context.board.errors, log: context.log)
        let recorder = HealthRecorder(
            context.queue,
            live: context.live,
            clock: context.clock,
            deviceID: context.deviceID,
            bootID: bootID,
            after: healthInterval
        )
        return {
            let configuration = services.configuration
            let isGood = supervisor.check()
            sourceWatch.check()
            context.queue.purge(retention: configuration.storage.retention)
            if isGood { isWell.signal() }
            unwritten.look()
            let report = status.fresh(within: .seconds(1))
            context.board.keep(report, in: context.queue)
            files.writeSnapshot(report)
            let isEnrolled = services.whyNotCollecting == nil
            if isEnrolled {
                let interval = configuration.healthInterval
                // A trial needs something to upload.
                let pace = context.isOnTrial.value ? min(interval, .seconds(60)) : interval
                let due = configuration.health.isEnabled ? pace : nil
                if recorder.check(report, every: due) { services.uploads?.uploader.tick() }
            } else {
                recorder.waits()
            }
            led.write(LEDPattern(report.state, isEnrolled: isEnrolled), configuration.led)
            if let metrics = configuration.metricsTextfile {
                let now = context.clock.stamp()
                aside.perform { files.write(metrics, of: report, at: now) }
            }
            context.log.debug(
                "queue",
                report.streams.mapValues { "\($0.pending) wait, \($0.uploaded) uploaded" }
            )
        }
    }

    private func startControl() throws {
        try door.open()
        guard let control = door.plane else { return }
        let subscriptions =
            context.board.sources.values.map { $0.subscribe { _ in control.changed() } } + [
                context.board.upload.subscribe { _ in control.changed() },
                context.queue.storage.subscribe { _ in control.changed() },
                context.clockWatch.board.subscribe { _ in control.changed() },
                context.board.schedule.subscribe { _ in control.changed() },
            ]
        running.update { $0.subscriptions += subscriptions }
    }
}
