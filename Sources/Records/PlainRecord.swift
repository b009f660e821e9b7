// Records that are a row of plain columns.
package import Host

/// A record that is a row of typed columns and nothing else.
package protocol PlainRecord: Sendable {
    static var kind: StreamKind { get }
    /// When it was captured.
    var stamp: Stamp { get }
    /// One for each column of its kind, in that order.
    var values: [ColumnValue] { get }
    /// Records that were never made, if it tells of such a loss.
    var loss: Loss? { get }
}

extension PlainRecord {
    package var loss: Loss? { nil }
}

/// A plain record on its way to its table, or back from it.
package struct PlainRow: Sendable, Equatable {
    package var stream: Stream
    package var stamp: Stamp
    package var values: [ColumnValue]
    /// The loss that is entered in the ledger in the same transaction.
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
