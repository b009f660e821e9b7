// Where batches go: a server, a bucket, or what a simulation puts in their place.
package import Host
package import Queue
import Records

/// Takes one batch at a time; used by one thread.
package protocol Destination: AnyObject {
    /// A sync begins: token or keys are read again, so that new ones are used without a restart.
    ///
    /// Throws a Failure with what a person can do about it.
    func begin() throws
    /// The network has changed: the next request makes a new connection.
    func networkChanged()
    /// The last record of a pending range that goes into one batch with its first, at most `limit` bytes of body.
    ///
    /// Always at least one record. The body may be made while records are counted; `send` uses it for a batch of this
    /// range from this reader only, and reads the records again for any other batch.
    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64
    /// Sends a batch; returns when it is judged, when nobody could be asked, or when `stop` is raised.
    ///
    /// `mayCost` is asked before each request with the bytes on the wire that it is expected to take, and with what those
    /// before it took; after a false the batch is held. Throws what reading its records does.
    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery
}

/// What became of a batch that was sent.
package struct Delivery: Sendable, Equatable {
    /// nil when it was stopped before there was one.
    package var verdict: Verdict?
    /// It was not sent, or not whole, for what it would have cost.
    package var isHeld = false
    /// Not a byte of it was sent: no server can have seen it.
    package var isUnsent = false
    /// Bytes of bodies handed to the network.
    package var bytes = 0
    /// Bytes on the wire.
    package var traffic = Traffic()
    /// Records of an accepted batch that the server says it had already.
    package var duplicates = 0
    /// The batch was sent more than once, so that duplicates are to be expected.
    package var wasRepeated = false

    package init(_ verdict: Verdict? = nil) {
        self.verdict = verdict
    }
}
