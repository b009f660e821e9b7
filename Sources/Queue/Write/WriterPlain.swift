// Stores plain records: rows of typed columns, and events.
import Records

extension Writer {
    /// Stores a plain record; `boot` is the boot row of its stamp, by default the current one.
    func insert(_ row: PlainRow, boot: Int64? = nil) throws {
        try begin()
        let sequence = try nextSequence(row.stream, bytes: row.storedBytes)
        try plainTables.insert(row, sequence, boot: boot ?? self.boot)
        if let loss = row.loss { try noteTold(loss) }
    }

    func insert(_ event: Event) throws { try insert(PlainRow(event)) }
}
