// A thread for work that would delay others.
import Host

/// Does one thing after another on a thread of its own.
final class Worker: Sendable {
    /// Requests that wait for the one under way.
    private static let limit = 64
    /// Of its thread.
    let life = Heartbeat()
    private let jobs = Mailbox<(@Sendable () -> Void)?>(limit: limit)

    /// `call`: the call that its jobs may hang in; nil for jobs that wait only for threads that are watched themselves.
    init(_ name: String, _ call: StaticString? = nil) throws {
        let (jobs, life) = (jobs, life)
        // Not joined: what it does may hang, and a stop waits for nobody.
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

    /// Does it, unless too much waits already.
    func perform(_ job: @escaping @Sendable () -> Void) { _ = jobs.post(job) }

    func perform(
        _ done: @escaping @Sendable (ControlReply) -> Void,
        _ job: @escaping @Sendable () -> ControlReply
    ) {
        guard !jobs.post({ done(job()) }) else { return }
        done(ControlReply(error: "\(Self.limit) requests wait already; try again later"))
    }

    func stop() { _ = jobs.post(nil, urgent: true) }
}
