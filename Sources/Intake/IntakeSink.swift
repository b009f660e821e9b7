// The seam between the intake and the queue.
package import Queue
package import Records

/// Stores records of user streams; implemented by the queue.
package protocol IntakeSink: Sendable {
    /// The most bytes that records put together should have.
    var putBytes: Int { get }

    /// Returns why the sink cannot store records of a declared stream; nil if it can.
    func refusal(of stream: String) -> String?

    /// Stores all records or none; calls `done` once, on any thread, with nil if they are on disk.
    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void)
}

extension Queue: IntakeSink {
    package func refusal(of stream: String) -> String? {
        let streams = streams
        if streams[name: stream]?.isOfUser == true { return nil }
        guard streams[number: Stream.last] != nil else {
            return "the disk has not taken the stream \(stream) yet; send it again later"
        }
        let maximum = Stream.last - Stream.firstOfUser + 1
        return "\(stream) is one too many: this device has had \(maximum) streams, as many as "
            + "it can; declare one of their names again, with wire = \"\(stream)\""
    }
}
