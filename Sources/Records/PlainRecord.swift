// Records stored as one row of plain columns.
package import Host

/// A record stored as one row of typed columns.
package protocol PlainRecord: Sendable {
    static var kind: StreamKind { get }
    /// When it was captured.
    var stamp: Stamp { get }
    /// One value per column of its kind, in that order.
    var values: [ColumnValue] { get }
    /// The loss it reports, if records were never made.
    var loss: Loss? { get }
}

extension PlainRecord {
    package var loss: Loss? { nil }
}

/// A plain record as a row to be inserted, or as read back.
package struct PlainRow: Sendable, Equatable {
    package var stream: Stream
    package var stamp: Stamp
    package var values: [ColumnValue]
    /// The loss to record in the same transaction.
    package var loss: Loss?

    package init(_ stream: Stream, _ stamp: Stamp, _ values: [ColumnValue], loss: Loss? = nil) {
        self.stream = stream
        self.stamp = stamp
        self.values = values
        self.loss = loss
    }

    package init<Record: PlainRecord>(_ record: Record) {
        self.init(Record.kind.stream, record.stamp, record.values, loss: record.loss)
    }
}
