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

/// A source that runs, and how to open it anew.
private struct OpenSource: Sendable {
    var lane: StoppableLane
    var adapter: (any RunningSource)?
    var open: @Sendable () throws -> (lane: StoppableLane, adapter: (any RunningSource)?)
}

/// The sources and the uploader of one configuration; a reload makes new ones.
final class Works: Sendable {
    let uploader: Uploader?
    private let timer: ReliableTimer?
    private let lanes: StateBox<[StoppableLane]>
    private let sources = StateBox([SourceName: OpenSource]())
    private let isStopped = StateBox(false)
    /// Why a source does not run; nil while it may.
    private let whyResting: @Sendable (SourceName) -> String?
    /// Ends the wait between two tries of the enrolment.
    private let retryEnrolment: Wakeup

    /// The next tick of the upload grid.
    var nextSync: BootInstant? { timer?.next }

    init(_ context: WorksContext, configuration: Configuration) throws {
        lanes = StateBox([])
        whyResting = { [resting = context.board.resting] in resting.value[$0] }
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
        for source in sources.value.values { source.adapter?.checkHealth() }
    }

    /// Stops the sources, then the uploader; returns when all of them have ended.
    func stop() {
        timer?.cancel()
        uploader?.stop()
        var running = lanes.update { lanes in
            defer { lanes.removeAll() }
            return lanes
        }
        running += sources.update { [isStopped] sources in
            isStopped.update { $0 = true }
            defer { sources.removeAll() }
            return sources.values.map(\.lane)
        }
        for lane in running { lane.raise() }
        for lane in running { lane.stop() }
    }

    /// Opens a source anew, without touching the others; returns why that was not possible.
    ///
    /// Waits until the source has let go of its device.
    func restart(_ name: SourceName) -> String? {
        if let why = whyResting(name) { return "\(name.rawValue) does not run: \(why)" }
        guard let source = sources.update({ $0.removeValue(forKey: name) }) else {
            return "\(name.rawValue) is being started or stopped; try again"
        }
        source.lane.stop()
        do {
            try open(name, source.open)
            return nil
        } catch {
            return "\(name.rawValue): \(error)"
        }
    }

    private func open(
        _ name: SourceName,
        _ open:
            @escaping @Sendable () throws -> (
                lane: StoppableLane, adapter: (any RunningSource)?
            )
    ) throws {
        let (lane, adapter) = try open()
        let isStopped = isStopped
        let isTooLate = sources.update { sources in
            if isStopped.value { return true }
            sources[name] = OpenSource(lane: lane, adapter: adapter, open: open)
            return false
        }
        if isTooLate { lane.stop() }
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
            let enrolled = EnrolmentWait(
                destination: enrolment,
                mark: mark,
                interval: interval,
                wakeup: wakeup,
                board: context.board,
                queue: context.queue,
                clock: context.clock,
                log: context.log
            ).run(until: stop)
            guard enrolled else { return }
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

    private func runSources(_ context: WorksContext, _ configuration: Configuration) throws {
        if !configuration.audio.enabled { context.queue.remember("audio", "off") }
        for name in SourceName.allCases where Self.isEnabled(name, configuration) {
            guard let publisher = context.board.sources[name] else { continue }
            try open(name) {
                switch name {
                case .beacons:
                    let adapter = try Self.beacons(context, configuration.beacons, publisher)
                    return (try StoppableLane("beacons") { adapter.run(until: $0) }, adapter)
                case .location:
                    let adapter = try Self.location(context, configuration.location, publisher)
                    return (try StoppableLane("location") { adapter.run(until: $0) }, adapter)
                case .audio:
                    let adapter = AudioAdapter(
                        settings: AudioSettings(configuration.audio),
                        sink: Self.sound(context.queue),
                        board: publisher,
                        clock: context.clock
                    )
                    return (try StoppableLane("audio") { adapter.run(until: $0) }, nil)
                }
            }
        }
    }

    private static func beacons(
        _ context: WorksContext,
        _ configuration: Configuration.Beacons,
        _ publisher: Publisher<SourceReport>
    ) throws -> BeaconAdapter {
        let (queue, clock, board) = (context.queue, context.clock, context.board)
        var settings = BeaconSettings(configuration)
        settings.tell = { why in
            board.errors.add(Failure(why), at: clock.wall())
            context.log.warning("beacons", ["why": why])
        }
        settings.recent = { queue.recentReadings() }
        return try BeaconAdapter(
            settings: settings,
            board: publisher,
            clock: clock,
            hasRoom: { queue.hasRoom },
            lose: { queue.note($0) },
            accept: { queue.accept($0) }
        )
    }

    /// Where sound goes; that which nobody wanted is no gap.
    private static func sound(_ queue: Queue) -> SoundSink {
        var sink = SoundSink(queue)
        if queue.remembered("audio") != "off" { sink.lastEnd = { queue.endOfSound() } }
        queue.remember("audio", "on")
        return sink
    }

    private static func location(
        _ context: WorksContext,
        _ configuration: Configuration.Location,
        _ publisher: Publisher<SourceReport>
    ) throws -> LocationAdapter {
        let (queue, clockWatch) = (context.queue, context.clockWatch)
        return try LocationAdapter(
            settings: LocationSettings(configuration),
            board: publisher,
            clock: context.clock,
            onTime: { clockWatch.receiver(said: $0) },
            onFix: { queue.note(place: $0) }
        ) { queue.accept($0) }
    }
}
