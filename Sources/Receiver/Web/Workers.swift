// A pool of threads that process complete bodies in order.
import Foundation

/// Runs jobs on a fixed number of threads.
final class Workers: @unchecked Sendable {
    // Unchecked because everything mutable is used under `condition`.
    /// A job; `isTooLate`: the server is stopping, so refuse the request.
    typealias Job = @Sendable (_ isTooLate: Bool) -> Void

    private let condition = NSCondition()
    private var jobs: [Job] = []
    private var running = 0
    /// Requests that are not fully answered yet.
    private var unanswered = 0
    private var isStopping = false

    init(_ count: Int) {
        for _ in 0..<count { Thread.detachNewThread { [self] in run() } }
    }

    /// Queues a job; returns false if the pool is stopping.
    func perform(_ job: @escaping Job) -> Bool {
        condition.withLock {
            guard !isStopping else { return false }
            jobs.append(job)
            unanswered += 1
            condition.signal()
            return true
        }
    }

    /// Counts a request that is answered without a job, until `answered` is called.
    func isAnswering() { condition.withLock { unanswered += 1 } }

    /// Called when a counted request is over.
    func answered() {
        condition.withLock {
            unanswered -= 1
            condition.broadcast()
        }
    }

    /// Stops the pool; returns when running jobs are done, queued ones refused, and all are
    /// answered.
    func finish() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
            while running > 0 || !jobs.isEmpty { condition.wait() }
            // A client that does not read its answer delays the stop by a second at most.
            let end = Date(timeIntervalSinceNow: 1)
            while unanswered > 0, condition.wait(until: end) {}
        }
    }

    private func run() {
        while let (job, isTooLate) = next() {
            job(isTooLate)
            condition.withLock {
                running -= 1
                condition.broadcast()
            }
        }
    }

    private func next() -> (Job, Bool)? {
        condition.withLock {
            while jobs.isEmpty, !isStopping { condition.wait() }
            guard !jobs.isEmpty else { return nil }
            running += 1
            return (jobs.removeFirst(), isStopping)
        }
    }
}
