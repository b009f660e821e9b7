// What a configuration sets to work: the sources, the uploader and its timer.
internal import Audio
internal import Beacons
internal import Board
internal import Glibc
internal import Host
internal import Location
internal import Queue
internal import Streams
internal import Upload

/// What outlives a configuration.
struct WorksContext: Sendable {
    let queue: Queue
    let board: GatewayBoard
    let clock: any HostClock
    let clockWatch: ClockWatch
    let deviceID: String
    let version: String
    let environment: [String: String]
    let log: Log
}

/// A source whose thread can be asked, from any other, to look whether it still hears something.
protocol RunningSource: Sendable {
    func checkHealth()
}

extension BeaconAdapter: RunningSource {}
extension LocationAdapter: RunningSource {}

/// The sources and the uploader of one configuration; a reload makes new ones.
final class Works: Sendable {
    let uploader: Uploader?
    private let timer: ReliableTimer?
    private let lanes: StateBox<[StoppableLane]>
    private let running = StateBox([any RunningSource]())
    /// Ends the wait between two tries of the enrolment.
    private let retryEnrolment: Wakeup

    /// The next tick of the upload grid.
    var nextSync: BootInstant? { timer?.next }

    init(_ context: WorksContext, configuration: Configuration) throws {
        lanes = StateBox([])
        retryEnrolment = try Wakeup()
        let destination = DestinationSettings(context, configuration)
        Self.checkToken(destination, context)
        uploader = destination.map { destination in
            Uploader(
                settings: UploadSettings(configuration.upload),
                queue: context.queue,
                board: context.board.upload,
                clock: context.clock
            ) { try destination.open() }
        }
        let grid = TimerGrid(
            interval: configuration.upload.interval,
            device: context.deviceID
        )
        let uploader = uploader
        timer = try uploader.map { uploader in
            try ReliableTimer(
                "upload-timer",
                grid: grid,
                clock: context.clock,
                leeway: .seconds(1)
            ) { uploader.tick() }
        }
        if let uploader, let destination {
            try start(uploader, context)
            try watchSurroundings(
                uploader,
                context,
                configuration.upload,
                token: destination.token
            )
        }
        try startSources(context, configuration, enrolment: destination)
    }

    /// A token that cannot be used is told at once, not at the first upload; collecting goes on without it.
    private static func checkToken(_ destination: DestinationSettings?, _ context: WorksContext) {
        guard let destination else { return }
        do {
            _ = try destination.token()
        } catch {
            let failure = (error as? Failure) ?? Failure("\(error)")
            context.board.errors.add(failure, at: context.clock.wall())
            context.log.error("no uploads", ["why": failure.message])
        }
    }

    /// Has each source look at itself; sound does so with each segment.
    func checkSources() {
        for source in running.value { source.checkHealth() }
    }

    /// Stops the sources, then the uploader; returns when all of them have ended.
    func stop() {
        timer?.cancel()
        uploader?.stop()
        let running = lanes.update { lanes in
            defer { lanes.removeAll() }
            return lanes
        }
        for lane in running { lane.raise() }
        for lane in running { lane.stop() }
    }

    private func run(_ name: String, _ body: @escaping @Sendable (StopSignal) -> Void) throws {
        let lane = try StoppableLane(name, body)
        lanes.update { $0.append(lane) }
    }

    private func start(_ uploader: Uploader, _ context: WorksContext) throws {
        try run("uploader") { stop in
            do {
                try uploader.run(until: stop)
            } catch {
                context.board.upload.failed(Failure("\(error)"))
                context.log.error("uploader", ["why": "\(error)"])
            }
        }
    }

    /// A network that came back, and a new token, are used at once.
    private func watchSurroundings(
        _ uploader: Uploader,
        _ context: WorksContext,
        _ upload: Configuration.Upload,
        token: @escaping @Sendable () throws -> String
    ) throws {
        let retryEnrolment = retryEnrolment
        let surroundings = Surroundings(
            tokenFile: upload.destination == .s3 ? upload.credentialsFile : upload.tokenFile,
            token: token,
            clock: context.clock,
            onNetwork: {
                retryEnrolment.signal()
                uploader.networkChanged()
            },
            onToken: {
                retryEnrolment.signal()
                uploader.tokenChanged()
            },
            log: context.log
        )
        try run("surroundings") { surroundings.run(until: $0) }
    }

    /// Starts the sources: at once, or once the server has said that it knows the device.
    private func startSources(
        _ context: WorksContext,
        _ configuration: Configuration,
        enrolment: DestinationSettings?
    ) throws {
        let mark = configuration.enrolmentMark
        let reason = configuration.whyNotCollecting
        context.board.resting.update { resting in
            resting = [:]
            for name in SourceName.allCases {
                if !Self.isEnabled(name, configuration) {
                    resting[name] = "disabled in the configuration"
                } else {
                    resting[name] = reason
                }
            }
        }
        if reason == nil { return try runSources(context, configuration) }
        guard let enrolment else { return }
        let interval = configuration.upload.interval
        let wakeup = retryEnrolment
        try run("enrolment") { [weak self] stop in
            let wait = { (stop: StopSignal) in Self.pause(interval, wakeup, until: stop) }
            guard Self.enrol(enrolment, mark: mark, wait, context, until: stop) else { return }
            context.board.resting.update { resting in
                resting = resting.filter { !Self.isEnabled($0.key, configuration) }
            }
            do {
                try self?.runSources(context, configuration)
            } catch {
                context.log.error("sources", ["why": "\(error)"])
            }
        }
    }

    private static func isEnabled(_ name: SourceName, _ configuration: Configuration) -> Bool {
        switch name {
        case .beacons: configuration.beacons.enabled
        case .location: configuration.location.enabled
        case .audio: configuration.audio.enabled
        }
    }

    /// Asks until the server accepts the device; false when stopped first.
    private static func enrol(
        _ destination: DestinationSettings,
        mark: String,
        _ pause: (StopSignal) -> Void,
        _ context: WorksContext,
        until stop: StopSignal
    ) -> Bool {
        while !stop.isRaised {
            do {
                try destination.verify(until: stop) { traffic in
                    try? context.queue.perform { try $0.note(traffic) }
                }
                if let file = fopen(mark, "w") { fclose(file) }
                context.log.info("enrolled", ["endpoint": destination.transport.endpoint])
                return true
            } catch {
                let failure = (error as? Failure) ?? Failure("\(error)")
                context.board.errors.add(failure, at: context.clock.wall())
                context.log.warning("not enrolled yet", ["why": failure.description])
            }
            pause(stop)
        }
        return false
    }

    /// Waits for an interval, or until there is a new reason to try.
    private static func pause(_ interval: Duration, _ wakeup: Wakeup, until stop: StopSignal) {
        var entries = [PollEntry(stop.descriptor), PollEntry(wakeup.descriptor)]
        _ = wait(for: &entries, timeout: interval)
        wakeup.clear()
    }

    private func runSources(_ context: WorksContext, _ configuration: Configuration) throws {
        let (queue, clock, board) = (context.queue, context.clock, context.board)
        let clockWatch = context.clockWatch
        if configuration.beacons.enabled, let publisher = board.sources[.beacons] {
            var settings = BeaconSettings(configuration.beacons)
            settings.tell = { why in
                board.errors.add(Failure(why), at: clock.wall())
                context.log.warning("beacons", ["why": why])
            }
            settings.recent = { queue.recentReadings() }
            let adapter = try BeaconAdapter(
                settings: settings,
                board: publisher,
                clock: clock,
                hasRoom: { queue.hasRoom },
                lose: { queue.note($0) },
                accept: { queue.accept($0) }
            )
            running.update { $0.append(adapter) }
            try run("beacons") { adapter.run(until: $0) }
        }
        if configuration.location.enabled, let publisher = board.sources[.location] {
            let adapter = try LocationAdapter(
                settings: LocationSettings(configuration.location),
                board: publisher,
                clock: clock,
                onTime: { clockWatch.receiver(said: $0) },
                onFix: { queue.note(place: $0) }
            ) { queue.accept($0) }
            running.update { $0.append(adapter) }
            try run("location") { adapter.run(until: $0) }
        }
        // Sound that nobody wanted is no gap.
        let wasOff = queue.remembered("audio") == "off"
        queue.remember("audio", configuration.audio.enabled ? "on" : "off")
        if configuration.audio.enabled, let publisher = board.sources[.audio] {
            var sink = SoundSink(queue)
            if !wasOff { sink.lastEnd = { queue.endOfSound() } }
            let adapter = AudioAdapter(
                settings: AudioSettings(configuration.audio),
                sink: sink,
                board: publisher,
                clock: clock
            )
            try run("audio") { adapter.run(until: $0) }
        }
    }
}
