// What was lost, counted: by stream and kind, with the span of time it covers.
package import Host

/// How records came to be lost.
package enum LossKind: String, Sendable, CaseIterable {
    /// Stored, and deleted before they were uploaded because space had ended.
    case evicted
    /// In quarantine, and dropped by a person.
    case discarded
    /// Heard while the writer was too far behind.
    case overrun
    /// Sent by the device, and dropped on the way or damaged before it was understood; counted in packets.
    case missed
    /// Accepted while the disk refused for longer than memory lasts, or hung until the program ended.
    case dropped
    /// Not readable any more in a database that was set aside.
    case corrupt
    /// Never captured: the source was gone, or stopped for want of space.
    case gap

    /// Entered in the transaction that removes the records; any other is held in memory until it is entered.
    package var isOfRemoval: Bool { self == .evicted || self == .discarded || self == .corrupt }

    /// The event that reports it (waypost-protocol(7), RECORDS).
    package var event: EventKind { self == .evicted || self == .discarded ? .evicted : .gap }
}

/// Records of one stream lost in one way: how many, and when the first and the last was captured.
package struct Loss: Sendable, Equatable {
    package var stream: Stream
    package var kind: LossKind
    package var records: Int64
    package var from: Stamp
    package var to: Stamp

    package init(_ kind: LossKind, _ stream: Stream, records: Int64, from: Stamp, to: Stamp) {
        self.kind = kind
        self.stream = stream
        self.records = records
        self.from = from
        self.to = to
    }
}
