// One run of a source: its thread, adapter and record sink.
import Audio
import Beacons
import Host
import Location
import Queue
import Setup
import Status
import StatusBoard

/// The settings of a source; it restarts when they change.
enum SourceSlice: Sendable, Equatable {
    case beacons(BeaconSettings)
    case location(LocationSettings)
    case audio(AudioSettings)

    /// Takes a source's settings from the configuration; returns nil if it is disabled.
    init?(_ name: SourceName, _ configuration: Configuration) {
        switch name {
        case .beacons where configuration.beacons.isEnabled: self = .beacons(configuration.beacons)
        case .location where configuration.location.isEnabled:
            self = .location(configuration.location)
        case .audio where configuration.audio.isEnabled: self = .audio(configuration.audio)
        default: return nil
        }
    }

    var name: SourceName {
        switch self {
        case .beacons: .beacons
        case .location: .location
        case .audio: .audio
        }
    }
}

/// A source from its start to its stop.
final class SourceRun: Sendable {
    let slice: SourceSlice
    let outlet: RecordSink
    private let thread: StoppableThread
    private let wake: (@Sendable () -> Void)?

    /// Starts the source's thread.
    ///
    /// `isOnTrial`: the previous run hung, and the board shows that until this run works.
    init(_ slice: SourceSlice, _ context: ServiceContext, isOnTrial: Bool = false) throws {
        let board = context.board.sources[slice.name] ?? Publisher()
        let outlet = RecordSink(context.queue, board, isOnTrial: isOnTrial)
        self.slice = slice
        self.outlet = outlet
        switch slice {
        case .beacons(let beacons):
            let adapter = try Self.beacons(beacons, outlet, context)
            wake = { adapter.checkHealth() }
            thread = try StoppableThread("beacons") { adapter.run(until: $0) }
        case .location(let location):
            let adapter = try Self.location(location, outlet, context)
            wake = { adapter.checkHealth() }
            thread = try StoppableThread("location") { adapter.run(until: $0) }
        case .audio(let audio):
            let adapter = AudioAdapter(
                settings: audio,
                sink: Self.sound(outlet),
                board: outlet.board,
                clock: context.clock
            )
            // It needs no waking: it checks itself with each audio segment.
            wake = nil
            thread = try StoppableThread("audio") { adapter.run(until: $0) }
        }
    }

    private static func beacons(
        _ settings: BeaconSettings,
        _ outlet: RecordSink,
        _ context: ServiceContext
    ) throws -> BeaconAdapter {
        let queue = context.queue
        var hooks = BeaconHooks()
        hooks.tell = { why in
            context.board.errors.add(Failure(why), at: context.clock.now())
            context.log.warning("beacons", ["why": why])
        }
        hooks.recent = { queue.recentReadings() }
        return try BeaconAdapter(
            settings: settings,
            hooks: hooks,
            board: outlet.board,
            clock: context.clock,
            hasRoom: { queue.hasRoom },
            lose: { loss in outlet.pass { queue.note(loss) } },
            accept: { sighting in outlet.pass(false) { queue.accept(sighting) } }
        )
    }

    /// Makes the sink for audio; a time in which audio was switched off is not a gap.
    private static func sound(_ outlet: RecordSink) -> SoundSink {
        let queue = outlet.queue
        var sink = outlet.soundSink
        if queue.remembered("audio") != "off" { sink.lastEnd = { queue.endOfSound() } }
        queue.remember("audio", "on")
        return sink
    }

    private static func location(
        _ settings: LocationSettings,
        _ outlet: RecordSink,
        _ context: ServiceContext
    ) throws -> LocationAdapter {
        let (queue, clockWatch) = (context.queue, context.clockWatch)
        return try LocationAdapter(
            settings: settings,
            board: outlet.board,
            clock: context.clock,
            onTime: { stamp in outlet.pass { clockWatch.receiver(said: stamp) } },
            onFix: { fix in outlet.pass { queue.note(place: fix) } }
        ) { fix in outlet.pass(false) { queue.accept(fix) } }
    }

    /// The heartbeat of its thread.
    var life: Heartbeat { thread.life }

    /// Asks the source to check itself and give a heartbeat.
    func check() {
        guard let wake else { return }
        thread.life.asked()
        wake()
    }

    func raise() { thread.raise() }

    /// Stops the run; returns false if it hangs and was abandoned.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        let hasEnded = thread.stop(by: deadline)
        outlet.cut()
        return hasEnded
    }
}
