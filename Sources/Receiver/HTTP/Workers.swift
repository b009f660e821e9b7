// Threads that work on what is ready, in its order.
import Foundation

/// As many bodies are worked on at once as there are threads.
final class Workers: @unchecked Sendable {
    // Unchecked because everything that changes is under `condition`.
    /// It is told whether it comes too late: the server is stopping.
    typealias Job = @Sendable (_ isTooLate: Bool) -> Void

    private let condition = NSCondition()
    private var jobs: [Job] = []
    private var running = 0
    /// Requests that have not got their answer yet, or not all of it.
    private var unanswered = 0
    private var isStopping = false

    init(_ count: Int) {
        for _ in 0..<count { Thread.detachNewThread { [self] in run() } }
    }

    /// Has it done; false: nothing is taken any more.
    func perform(_ job: @escaping Job) -> Bool {
        condition.withLock {
            guard !isStopping else { return false }
            jobs.append(job)
            unanswered += 1
            condition.signal()
            return true
        }
    }

    /// A request that needs no work has begun to be answered, and is over when `answered` says so.
    func isAnswering() { condition.withLock { unanswered += 1 } }

    /// A request that was worked on, or is being answered, is over.
    func answered() {
        condition.withLock {
            unanswered -= 1
            condition.broadcast()
        }
    }

    /// Takes nothing any more; returns when what was begun is done, the rest told off, and all of them answered.
    func finish() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
            while running > 0 || !jobs.isEmpty { condition.wait() }
            // Whoever does not read its answer is not waited for.
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
