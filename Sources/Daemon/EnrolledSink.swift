// Refuses records of other programs until the server has accepted this device.
import Host
import Intake
import Records

/// An intake sink that refuses records of other programs while the sources may not collect.
struct EnrolledSink: IntakeSink {
    let queue: any IntakeSink
    let whyNot: @Sendable () -> String?

    init(queue: any IntakeSink, whyNot: @escaping @Sendable () -> String?) {
        self.queue = queue
        self.whyNot = whyNot
    }

    var putBytes: Int { queue.putBytes }

    func refusal(of stream: String) -> String? { queue.refusal(of: stream) }

    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
        if let why = whyNot() { return done(Failure(why)) }
        queue.put(records, done: done)
    }
}
