// Where the records of other programs go.
package import Queue
package import Records

/// Keeps records of the streams of the user; the queue is one.
package protocol IntakeSink: Sendable {
    /// The bytes that records put together should have at most.
    var putBytes: Int { get }

    /// Why it has no place for the records of a declared stream; nil where it has one.
    func refusal(of stream: String) -> String?

    /// Calls `done` once, on any thread, when all of them are on the disk, or with the reason why none is.
    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void)
}

extension Queue: IntakeSink {
    package func refusal(of stream: String) -> String? {
        let streams = streams
        if streams[name: stream]?.isOfUser == true { return nil }
        guard streams[number: Stream.last] != nil else {
            return "the disk has not taken the stream \(stream) yet; send it again later"
        }
        let most = Stream.last - Stream.firstOfUser + 1
        return "\(stream) is one too many: this device has had \(most) streams, as many as "
            + "it can; declare one of their names again, with wire = \"\(stream)\""
    }
}
