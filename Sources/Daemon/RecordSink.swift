// Connects one run of a source to the queue and the status board, and can disconnect it.
import Audio
import Host
import Queue
import Records
import StatusBoard
import Synchronization

/// The handle through which one run of a source stores records and publishes its state.
///
/// When a source hangs, the supervisor starts a new run and cuts off the old one's sink. The hung
/// thread may wake up later; its records and state are then discarded here. Thread-safe: used by
/// the source's thread, cut off by another.
final class RecordSink: Sendable {
    /// The board on which the run publishes its state.
    let board = Publisher<SourceReport>()
    let queue: Queue
    private let gate = Mutex(Gate())
    /// The previous run hung: the board shows that until this run has worked for a while.
    private let isOnTrial: Atomic<Bool>
    private let forwarding: Mutex<Subscription?>
    private let target: Publisher<SourceReport>
    /// The report of the runs before this one.
    private let before: SourceReport?

    private struct Gate {
        var isOpen = true
        /// The audio run that is being recorded.
        var run: Int64?
    }

    init(_ queue: Queue, _ target: Publisher<SourceReport>, isOnTrial: Bool = false) {
        self.queue = queue
        self.target = target
        before = target.state.value
        self.isOnTrial = Atomic(isOnTrial)
        forwarding = Mutex(nil)
        let subscription = board.subscribe { [weak self] in self?.forward($0) }
        forwarding.withLock { $0 = subscription }
    }

    private func forward(_ state: BoardState<SourceReport>) {
        let isTried = isOnTrial.load(ordering: .acquiring)
        switch state {
        case .unknown: break
        case .loading(let previous):
            if !isTried { target.publish(.loading(previous: sum(previous))) }
        case .loaded(let report):
            if !isTried { target.loaded(report.added(to: before)) }
        // A new error replaces the one about the hung run.
        case .error(let failure, let previous):
            target.publish(.error(failure, previous: sum(previous)))
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
        forwarding.withLock { $0 = nil }
    }

    /// Runs `body` and returns its result, or returns `otherwise` if the run was cut off.
    func pass<Result: Sendable>(_ otherwise: Result, _ body: () -> Result) -> Result {
        // Under the lock, so that no `body` still runs after `cut` has returned. No `body` waits
        // for the disk.
        gate.withLock { $0.isOpen ? body() : otherwise }
    }

    func pass(_ body: () -> Void) { pass((), body) }

    private func begin(_ run: AudioRun) {
        gate.withLock { gate in
            guard gate.isOpen else { return }
            gate.run = run.id
            queue.begin(run)
        }
    }

    private func end(run: Int64) {
        gate.withLock { gate in
            guard gate.isOpen else { return }
            gate.run = nil
            queue.end(run: run)
        }
    }

    /// The sink of an audio source.
    var soundSink: SoundSink {
        var sink = SoundSink(
            newRunID: { self.queue.newRunID() },
            begin: { self.begin($0) },
            accept: { segment in self.pass(false) { self.queue.accept(segment) } },
            refusal: { self.queue.soundRefusal },
            end: { self.end(run: $0) },
            event: { event in self.pass { _ = self.queue.accept(event) } }
        )
        sink.lost = { loss in self.pass { self.queue.note(loss) } }
        return sink
    }
}
