// Counts of lost records, by stream and kind, with the span of time they cover.
package import Host

/// Why records were lost.
package enum LossKind: String, Sendable, CaseIterable {
    /// Stored, but evicted before upload because space ran out.
    case evicted
    /// Sound that nobody had marked, evicted because space ran out: as intended, so no fault of the device.
    case unmarked
    /// Quarantined, then dropped by a person.
    case discarded
    /// Received while the writer was too far behind.
    case overrun
    /// Sent by the device, but dropped on the way or damaged before parsing; counted in packets.
    case missed
    /// Accepted, but the disk refused for longer than memory lasts, or hung until the program
    /// ended.
    case dropped
    /// Unreadable in a quarantined database.
    case corrupt
    /// Never captured: the source was gone, or stopped for lack of space.
    case gap

    /// Recorded in the transaction that removes the records; any other loss waits in memory.
    package var isOfRemoval: Bool { event == .evicted || self == .corrupt }

    /// The event that reports it (waypost-protocol(7), RECORDS).
    package var event: EventKind {
        [.evicted, .unmarked, .discarded].contains(self) ? .evicted : .gap
    }
}

/// Records of one stream lost for one reason: how many, and when the first and last was captured.
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
