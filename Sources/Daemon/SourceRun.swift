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

/// The settings and the window with which a source is to run.
struct SourceOrder: Sendable {
    var slice: SourceSlice
    var window: DeviceWindow

    /// Follows the schedule's order; nil if the source is not to run.
    ///
    /// `run` is the present run, which may go on for a moment when its window has closed.
    init?(_ slice: SourceSlice, _ order: ScheduleOrder?, after run: SourceRun?) {
        switch order {
        case .run(let window): self.init(slice, window)
        case .ends:
            guard let run else { return nil }
            self.init(slice, run.window)
        case .rests, nil: return nil
        }
    }

    init(_ slice: SourceSlice, _ window: DeviceWindow) {
        (self.slice, self.window) = (slice, window)
    }
}

/// A source from its start to its stop.
final class SourceRun: Sendable {
    let slice: SourceSlice
    let sink: QueueSink
    /// The window that it was started for.
    let window: DeviceWindow
    private let source: any Source
    let thread: StoppableThread
    /// Whether its window has closed.
    private let closed = StateBox(false)

    /// Starts the source's thread.
    ///
    /// `isOnTrial`: the previous run hung, and the board shows that until this run works.
    init(
        _ order: SourceOrder,
        _ context: ServiceContext,
        tap: AdvertisementTap?,
        isOnTrial: Bool = false
    ) throws {
        let (slice, window) = (order.slice, order.window)
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
            onTime: { context.clockWatch.receiver(said: $0, isSettled: $1) },
            onEffort: { effort in
                // Until its window opens, nothing is due, whatever becomes of its device.
                let (now, opens) = (context.clock.stamp(), window.opens)
                context.record(effort, of: slice.name, at: opens.boot > now.boot ? opens : now)
            },
            schedule: context.schedule
        )
        sink.window = window.recording
        let source = try Self.source(slice, sink, context)
        if slice.name == .audio { AudioMemo(.on, due: window.due).keep(in: context.queue) }
        (self.slice, self.window) = (slice, window)
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
            return AudioAdapter(settings: settings, sink: sink, board: board, clock: clock)
        }
    }

    var hasClosed: Bool { closed.value }

    /// The order for another run in its place.
    var order: SourceOrder {
        var window = window
        window.closes = sink.window.closes
        return SourceOrder(slice, window)
    }

    /// Returns true if a source as ordered needs another run.
    ///
    /// A schedule's change that only moves the window's end does not.
    func differs(from order: SourceOrder?) -> Bool {
        slice != order?.slice || window.opens != order?.window.opens
    }

    /// Takes the present end of its window, or ends its recording; `passed` are the windows that
    /// opened and closed since the last order.
    func obey(_ order: ScheduleOrder?, passed: [DueTime] = [], _ context: ServiceContext) {
        switch order {
        case .run(let window) where window.opens == self.window.opens:
            sink.window.closes = window.closes
        case .run(let next):
            // The gateway was suspended or busy, and did not see the window's end.
            guard let closes = closes(passed), closes <= next.opens.boot else { return }
            close(at: next.opens, passed, context)
            // Else its device is opened before the window.
            guard next.opens.boot < context.clock.now() else { return }
            context.record(.failed(ServiceContext.late), of: slice.name, at: next.opens)
        case .ends(let end), .rests(let end): close(at: end, passed, context)
        case nil: break
        }
    }

    /// When its window closes; its start, if all of that passed unnoticed.
    private func closes(_ passed: [DueTime]) -> BootInstant? {
        let isPassed = passed.contains { $0.from.boot == window.opens.boot }
        return sink.window.closes ?? (isPassed ? window.opens.boot : nil)
    }

    /// Ends its recording at this time, or when its own window closed before; the audio until then
    /// is still read.
    private func close(at end: Stamp, _ passed: [DueTime], _ context: ServiceContext) {
        if !closed.replace(with: true) {
            let end = end.advanced(by: min(.zero, (closes(passed) ?? end.boot) - end.boot))
            sink.window.closes = end.boot
            context.recordClosed(slice.name, at: end)
            if slice.name == .audio {
                AudioMemo(.closed(end), due: window.due).keep(in: context.queue)
            }
        }
        context.record(passed: passed, of: slice.name)
    }

    /// Asks the source to check itself and give a heartbeat.
    func check() {
        thread.life.asked()
        source.checkHealth()
    }

    /// Stops the run; returns false if it hangs and was abandoned.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        let hasEnded = thread.stop(by: deadline)
        sink.cut()
        return hasEnded
    }
}
