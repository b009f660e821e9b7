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
}
