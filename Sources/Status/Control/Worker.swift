// A thread for work that would delay other threads.
package import Host

/// Runs jobs one after another on a separate thread.
package final class Worker: Sendable {
    /// The most jobs that wait for the running one.
    private static let limit = 64
    /// The heartbeat of its thread.
    package let life = Heartbeat()
    private let jobs = Mailbox<(@Sendable () -> Void)?>(limit: limit)

    /// Starts the thread.
    ///
    /// `call` is the call in which its jobs may hang; nil for jobs that wait only for threads with
    /// a heartbeat of their own.
    package init(_ name: String, _ call: StaticString? = nil) throws {
        let (jobs, life) = (jobs, life)
        // Not joined: its job may hang, and a stop does not wait for it.
        let thread = try OwnThread(name) {
            var batch: [(@Sendable () -> Void)?] = []
            while true {
                life.rests()
                jobs.takeAll(into: &batch, timeout: nil)
                for job in batch {
                    guard let job else { return life.ends() }
                    if let call { life.enters(call) }
                    job()
                }
            }
        }
        thread.detach()
    }

    /// Runs a job later; drops it if too many wait already.
    package func perform(_ job: @escaping @Sendable () -> Void) { _ = jobs.post(job) }

    package func perform(
        _ done: @escaping @Sendable (ControlReply) -> Void,
        _ job: @escaping @Sendable () -> ControlReply
    ) {
        guard !jobs.post({ done(job()) }) else { return }
        done(ControlReply(error: "\(Self.limit) requests wait already; try again later"))
    }

    package func stop() { _ = jobs.post(nil, urgent: true) }
}
