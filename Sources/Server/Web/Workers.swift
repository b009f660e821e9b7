// A pool of threads that process complete bodies in order.
import Host

/// Runs jobs on a fixed number of threads.
final class Workers: Sendable {
    /// A job; `isTooLate`: the server is stopping, so refuse the request.
    typealias Job = @Sendable (_ isTooLate: Bool) -> Void

    private struct State {
        var jobs: [Job] = []
        var running = 0
        /// Requests that are not fully answered yet.
        var unanswered = 0
        var isStopping = false
    }

    private let state = Condition(State())

    /// Throws a `SystemError` if a thread cannot be started.
    init(_ count: Int) throws {
        for _ in 0..<count {
            try OwnThread("worker", stack: 8 << 20) { [self] in run() }.detach()
        }
    }

    /// Queues a job; returns false if the pool is stopping.
    func perform(_ job: @escaping Job) -> Bool {
        let isQueued = state.withLock { state in
            guard !state.isStopping else { return false }
            state.jobs.append(job)
            state.unanswered += 1
            return true
        }
        if isQueued { state.signal() }
        return isQueued
    }

    /// Counts a request that is answered without a job, until `answered` is called.
    func isAnswering() { state.withLock { $0.unanswered += 1 } }

    /// Called when a counted request is over.
    func answered() {
        state.change {
            $0.unanswered -= 1
            invariant($0.unanswered >= 0, "a request is answered once")
        }
    }

    /// Stops the pool; returns when running jobs are done, queued ones refused, and all are
    /// answered.
    func finish() {
        state.change { $0.isStopping = true }
        state.wait(until: { $0.running == 0 && $0.jobs.isEmpty }) { _ in }
        // A client that does not read its answer delays the stop by a second at most.
        state.wait(timeout: .seconds(1), until: { $0.unanswered <= 0 }) { _ in }
    }

    private func run() {
        while let (job, isTooLate) = next() {
            job(isTooLate)
            state.change { $0.running -= 1 }
        }
    }

    private func next() -> (Job, Bool)? {
        state.wait(until: { !$0.jobs.isEmpty || $0.isStopping }) { state in
            guard !state.jobs.isEmpty else { return nil }
            state.running += 1
            return (state.jobs.removeFirst(), state.isStopping)
        }
    }
}
