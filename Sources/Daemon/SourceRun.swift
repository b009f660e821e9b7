// One run of a source: its thread, adapter and sink.
import Audio
import Beacons
import Host
import Location
import Proxy
import Queue
import Records
import Setup
import Status
import StatusBoard

/// The settings of a source; the source restarts when they change.
enum SourceSlice: Sendable, Equatable {
    /// `isTapped`: each advertisement also goes to the Bluetooth proxy.
    case beacons(BeaconSettings, isTapped: Bool)
    case location(LocationSettings)
    case audio(AudioSettings)

    /// Takes a source's settings from the configuration; returns nil if it is disabled.
    init?(_ name: SourceName, _ configuration: Configuration) {
        switch name {
        case .beacons where configuration.beacons.isEnabled:
            self = .beacons(configuration.beacons, isTapped: configuration.proxy.isEnabled)
        case .location where configuration.location.isEnabled:
            self = .location(configuration.location)
        case .audio where configuration.audio.isEnabled: self = .audio(configuration.audio)
        default: return nil
        }
    }

    var isTapped: Bool { if case .beacons(_, true) = self { true } else { false } }

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
    let sink: QueueSink
    private let source: any Source
    private let thread: StoppableThread

    /// Starts the source's thread.
    ///
    /// `isOnTrial`: the previous run hung, and the board shows that until this run works.
    init(
        _ slice: SourceSlice,
        _ context: ServiceContext,
        tap: AdvertisementTap?,
        isOnTrial: Bool = false
    ) throws {
        let name = slice.name.rawValue
        let sink = QueueSink(
            context.queue,
            context.board.sources[slice.name] ?? Publisher(),
            live: context.live,
            isOnTrial: isOnTrial,
            tap: tap,
            sound: context.sound,
            onWarning: { why in
                context.board.errors.add(Failure(why), at: context.clock.now())
                context.log.warning(name, ["why": why])
            },
            onTime: { context.clockWatch.receiver(said: $0) }
        )
        let source = try Self.source(slice, sink, context)
        self.slice = slice
        self.sink = sink
        self.source = source
        thread = try StoppableThread(name) { source.run(until: $0) }
    }

    private static func source(
        _ slice: SourceSlice,
        _ sink: QueueSink,
        _ context: ServiceContext
    ) throws -> any Source {
        let (board, clock) = (sink.board, context.clock)
        switch slice {
        case .beacons(let settings, _):
            return try BeaconAdapter(settings: settings, sink: sink, board: board, clock: clock)
        case .location(let settings):
            return try LocationAdapter(settings: settings, sink: sink, board: board, clock: clock)
        case .audio(let settings):
            AudioMemo.on.keep(in: context.queue)
            return AudioAdapter(settings: settings, sink: sink, board: board, clock: clock)
        }
    }

    /// The heartbeat of its thread.
    var life: Heartbeat { thread.life }

    /// Asks the source to check itself and give a heartbeat.
    func check() {
        thread.life.asked()
        source.checkHealth()
    }

    func raise() { thread.raise() }

    /// Stops the run; returns false if it hangs and was abandoned.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        let hasEnded = thread.stop(by: deadline)
        sink.cut()
        return hasEnded
    }
}
