// Connects one run of a source to the queue and the status board, and can disconnect it.
import Host
import Live
import Queue
import Records
import StatusBoard
import Synchronization

/// The `RecordSink` of one run of a source, which also publishes the run's state.
///
/// When a source hangs, the supervisor starts a new run and cuts off the old one's sink. The hung
/// thread may wake up later; its records and state are then discarded here. Thread-safe: used by
/// the source's thread, cut off by another.
final class QueueSink: RecordSink {
    /// The board on which the run publishes its state.
    let board = Publisher<SourceReport>()
    let tap: AdvertisementTap?
    let soundTap: AudioTap?
    private let queue: Queue
    /// The values to be published live; nil while nothing is.
    private let live: StateBox<LiveTap?>
    private let onWarning: @Sendable (String) -> Void
    private let onTime: @Sendable (Stamp, _ isSettled: Bool) -> Void
    private let schedule: SourceSchedule?
    private let recording = Mutex(RecordingWindow())
    private let gate = Mutex(Gate())
    /// The previous run hung: the board shows that until this run has worked for a while.
    private let isOnTrial: Atomic<Bool>
    private let wasFull = Atomic(false)
    private let forwarding: Mutex<[Subscription]>
    private let target: Publisher<SourceReport>
    /// The report of the runs before this one.
    private let before: SourceReport?
    /// How the last run of the audio source ended.
    private let audioMemo: AudioMemo?
    private let onEffort: @Sendable (SourceEffort) -> Void
    /// The state of the run, as last noted in the effort account.
    private let effort = Mutex<SourceEffort?>(nil)

    private struct Gate {
        var isOpen = true
        /// The audio run that is being recorded.
        var run: Int64?
    }

    init(
        _ queue: Queue,
        _ target: Publisher<SourceReport>,
        live: StateBox<LiveTap?> = StateBox(nil),
        isOnTrial: Bool = false,
        tap: AdvertisementTap? = nil,
        sound: AudioTap? = nil,
        onWarning: @escaping @Sendable (String) -> Void = { _ in },
        onTime: @escaping @Sendable (Stamp, _ isSettled: Bool) -> Void = { _, _ in },
        onEffort: @escaping @Sendable (SourceEffort) -> Void = { _ in },
        schedule: SourceSchedule? = nil
    ) {
        (self.queue, self.live) = (queue, live)
        self.target = target
        (self.tap, soundTap) = (tap, sound)
        self.onWarning = onWarning
        self.onTime = onTime
        self.onEffort = onEffort
        self.schedule = schedule
        before = target.state.value
        audioMemo = AudioMemo(queue)
        self.isOnTrial = Atomic(isOnTrial)
        forwarding = Mutex([])
        let subscriptions = [
            board.subscribe { [weak self] in self?.forward($0) },
            // The disk may become full, or have room again, while the source hears nothing.
            queue.storage.subscribe { [weak self] _ in self?.storageChanged() },
        ]
        forwarding.withLock { $0 = subscriptions }
    }

    private func storageChanged() {
        let full = queue.fullRefusal != nil
        if wasFull.exchange(full, ordering: .acquiringAndReleasing) != full { forward(board.state) }
    }

    private func forward(_ state: BoardState<SourceReport>) {
        recordEffort()
        let isTried = isOnTrial.load(ordering: .acquiring)
        switch state {
        case .unknown: break
        case .loading(let previous):
            if !isTried { target.publish(.loading(previous: sum(previous))) }
        case .loaded(let report):
            if let full = queue.fullRefusal {
                target.publish(.error(full, previous: sum(report)))
            } else if !isTried {
                target.loaded(report.added(to: before))
            }
        // A new error replaces the one about the hung run.
        case .error(let failure, let previous):
            target.publish(.error(failure, previous: sum(previous)))
        }
    }

    /// Notes each change in the effort account, also of a run on trial.
    ///
    /// `again`: also without a change, because a hang may have been noted in between. The state is
    /// read under the lock: of two threads, the later one notes the newer state.
    func recordEffort(again: Bool = false) {
        effort.withLock { last in
            if again { last = nil }
            let next: SourceEffort? =
                switch board.state {
                case .unknown: nil
                case .loading: last == .listening ? .starting : last ?? .starting
                case .loaded: queue.fullRefusal.map { .failed($0.cause) } ?? .listening
                case .error(let failure, _): .failed(failure.cause)
                }
            guard let next, next != last else { return }
            last = next
            onEffort(next)
        }
    }

    private func sum(_ report: SourceReport?) -> SourceReport? {
        report.map { $0.added(to: before) } ?? before
    }

    /// Publishes the run's state from now on, the present one first.
    func endTrial() {
        guard isOnTrial.exchange(false, ordering: .acquiringAndReleasing) else { return }
        forward(board.state)
    }

    /// Disconnects the run; after this returns, nothing passes.
    func cut() {
        let run = gate.withLock { gate in
            gate.isOpen = false
            return gate.run
        }
        // Its last segments become a chunk, even a short one.
        if let run { queue.end(run: run) }
        forwarding.withLock { $0 = [] }
    }

    // MARK: RecordSink

    /// Runs `body` and returns its result, or returns `otherwise` if the run was cut off.
    ///
    /// Under the lock, so that no `body` still runs after `cut` has returned. No `body` waits for
    /// the disk.
    private func pass<Result: Sendable>(
        _ otherwise: Result,
        _ body: (inout Gate) -> Result
    ) -> Result {
        gate.withLock { $0.isOpen ? body(&$0) : otherwise }
    }

    func accept(_ sighting: Sighting) -> Bool {
        pass(false) { _ in
            guard queue.accept(sighting) else { return false }
            live.value?.accept(sighting)
            return true
        }
    }

    func accept(_ fix: Fix) -> Bool {
        pass(false) { _ in
            guard queue.accept(fix) else { return false }
            live.value?.accept(fix)
            return true
        }
    }

    func accept(_ segment: Segment) -> Bool { pass(false) { _ in queue.accept(segment) } }
    func accept(_ event: Event) { pass(()) { _ in _ = queue.accept(event) } }
    func record(_ loss: Loss) { pass(()) { _ in queue.record(loss) } }
    func warn(_ message: String) { onWarning(message) }

    var hasRoom: Bool { queue.hasRoom }
    func recentReadings() -> [Sighting] { queue.recentReadings() }

    func record(place fix: Fix) {
        pass(()) { _ in
            queue.record(place: fix)
            soundTap?.place.update { $0 = fix }
            schedule?.record(place: fix)
        }
    }
    func record(time stamp: Stamp, isSettled: Bool) {
        pass(()) { _ in onTime(stamp, isSettled) }
    }

    func newRunID() -> Int64 { queue.newRunID() }

    func begin(_ run: AudioRun) {
        pass(()) { gate in
            gate.run = run.id
            queue.begin(run)
        }
    }

    func end(run: Int64) {
        pass(()) { gate in
            gate.run = nil
            queue.end(run: run)
        }
    }

    var soundRefusal: Failure? { queue.soundRefusal }
    func endOfAudio() -> Stamp? { lastAudio.end }
    func missedAudio() -> [DueTime] { lastAudio.missed + (schedule?.takeMissed() ?? []) }

    /// When audio was last recorded, if something is missing since then, and the closed windows in
    /// which it is.
    private var lastAudio: (end: Stamp?, missed: [DueTime]) {
        let known = [queue.endOfAudio(), audioMemo?.due].compactMap { $0 }
        guard let end = known.max(by: { $0.boot < $1.boot }) else { return (nil, []) }
        switch audioMemo?.state {
        case .off: return (nil, [])
        case .stopped, nil: return (end, [])
        case .closed(let stamp):
            return (nil, stamp.boot > end.boot ? [DueTime(from: end, to: stamp)] : [])
        // The process died.
        case .on: return schedule?.due(since: end) ?? (end, [])
        }
    }

    var stoppedAt: Stamp? {
        if case .stopped(let stamp)? = audioMemo?.state { stamp } else { nil }
    }

    /// The window of the source's schedule; set by `Services`.
    var window: RecordingWindow {
        get { recording.withLock { $0 } }
        set { recording.withLock { $0 = newValue } }
    }
}

extension Failure {
    /// Why a source does not record, for its effort account.
    fileprivate var cause: String { code == .storageFull ? "space: \(message)" : message }
}
