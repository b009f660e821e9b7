// The stored size of records: decides how much an eviction step deletes, and from which stream.
package import Records
import SQLite

extension StreamKind {
    /// Bytes of a row besides its text and bytes: numbers, headers, its share of interior pages.
    static let rowBytes = 48

    /// An SQL expression for the stored bytes of a row of `table`; audio includes its segments.
    ///
    /// Bounded, because a damaged row may hold any number.
    package var storedBytes: String {
        switch shape {
        case .sound: return "\(Self.rowBytes)+max(0, min(bytes, 1<<40))"
        case .sightings: return "\(Self.rowBytes)+ifnull(length(payload), 0)"
        case .plain(let columns):
            let long = columns.filter { $0.type != "INTEGER" }.map {
                "+ifnull(length(CAST(\($0.name) AS BLOB)), 0)"
            }
            return "\(Self.rowBytes)" + long.joined()
        }
    }
}

extension PlainRow {
    /// The size that `StreamKind.storedBytes` gives for its row.
    var storedBytes: Int {
        values.reduce(StreamKind.rowBytes) { sum, value in
            switch value {
            case .text(let text): sum + text.utf8.count
            case .bytes(let bytes): sum + bytes.count
            default: sum
            }
        }
    }
}

extension Writer {
    /// Returns the stored bytes of a range's existing records; 0 for an older database.
    func storedBytes(_ partition: Partition, _ range: ClosedRange<Int64>) throws -> Int64 {
        guard partition.isLive, let kind = streams[partition.stream] else { return 0 }
        return try connection.integer(
            "SELECT sum(\(kind.storedBytes)) FROM \(kind.table) WHERE id BETWEEN ? AND ?",
            range.lowerBound,
            range.upperBound
        ) ?? 0
    }

    /// Subtracts a range from the pending bytes; call it while the rows still exist.
    func subtractPending(_ partition: Partition, _ range: ClosedRange<Int64>) throws {
        let bytes = memory[partition].pendingBytes - (try storedBytes(partition, range))
        memory[partition].pendingBytes = max(0, bytes)
    }

    /// Computes and stores the pending bytes of a live stream that does not have a sum yet.
    func addUpPending(_ stream: Stream) throws {
        let (partition, number) = (Partition(stream), Int64(stream.number))
        let sum = try connection.integer(
            "SELECT pending_bytes FROM sequences WHERE database=0 AND stream=?",
            number
        )
        guard sum == nil else { return }
        let ready = try batches("WHERE state=0 AND database=0 AND stream=?", number)
        let ranges = memory[partition].free() + ready.map { $0.first...$0.last }
        let bytes = try ranges.reduce(0) { try $0 + storedBytes(partition, $1) }
        try connection.run(
            "UPDATE sequences SET pending_bytes=? WHERE database=0 AND stream=?",
            bytes,
            number
        )
        memory[partition].pendingBytes = bytes
    }
}
