// Receives the records of other programs.
import Host
import Intake
import Live
import Queue
import Records

/// An intake sink that refuses records while the sources may not collect, and also publishes them
/// once they are on disk.
struct ProgramSink: IntakeSink {
    let queue: Queue
    let live: StateBox<LiveTap?>
    let whyNot: @Sendable () -> String?

    var putBytes: Int { queue.putBytes }

    func refusal(of stream: String) -> String? { queue.refusal(of: stream) }

    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
        if let why = whyNot() { return done(Failure(why)) }
        guard let tap = live.value else { return queue.put(records, done: done) }
        queue.put(records) { error in
            if error == nil { tap.accept(records) }
            done(error)
        }
    }
}
