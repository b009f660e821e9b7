// What one run of a source may do to the rest of the gateway, until it is cut off.
import Audio
import Host
import Queue
import Records
import StatusBoard
import Synchronization

/// The only way of one run of a source to the queue and the board.
///
/// A run that was given up may go on for as long as its call hangs; whatever it does then ends here.
final class RecordSink: Sendable {
    /// Where the run tells its state.
    let board = Publisher<SourceReport>()
    let queue: Queue
    private let gate = Mutex(Gate())
    /// The run before it hung: the board goes on saying so until this run has worked for a while.
    private let isOnTrial: Atomic<Bool>
    private let forwarding: Mutex<Subscription?>
    private let target: Publisher<SourceReport>
    /// What the runs before it have done.
    private let before: SourceReport?

    private struct Gate {
        var isOpen = true
        /// The run of sound that goes on.
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
        // A new error replaces the one about the run that hung.
        case .error(let failure, let previous):
            target.publish(.error(failure, previous: sum(previous)))
        }
    }

    private func sum(_ report: SourceReport?) -> SourceReport? {
        report.map { $0.added(to: before) } ?? before
    }

    /// Its state is published from now on, the present one first.
    func endTrial() {
        guard isOnTrial.exchange(false, ordering: .acquiringAndReleasing) else { return }
        forward(board.state)
    }

    /// Nothing comes out of it any more once this returns.
    func cut() {
        let run = gate.withLock { gate in
            gate.isOpen = false
            return gate.run
        }
        // What it recorded until then becomes a chunk, even a short one.
        if let run { queue.end(run: run) }
        forwarding.withLock { $0 = nil }
    }

    /// Does `body` unless it was cut off.
    func pass<Result: Sendable>(_ otherwise: Result, _ body: () -> Result) -> Result {
        // Under the lock, so that no `body` still runs when `cut` has returned; no `body` waits for the disk.
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

    /// A source of sound's way into the queue.
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
