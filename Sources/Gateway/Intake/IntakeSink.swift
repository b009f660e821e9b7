// Where the records of other programs go.
package import Queue
package import Streams

/// Keeps records of the streams of the user; the queue is one.
package protocol IntakeSink: Sendable {
    /// The bytes that records put together should have at most.
    var putBytes: Int { get }

    /// Calls `done` once, on any thread, when all of them are on the disk, or with the reason why none is.
    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void)
}

extension Queue: IntakeSink {}
