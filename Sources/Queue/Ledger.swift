// Reads the stored ledger of losses.
package import Host
package import Records
import SQLite

/// All losses of one kind in a stream since the database was created.
package struct LossEntry: Sendable, Equatable {
    package var stream: Stream
    package var kind: LossKind
    package var records: Int
    /// By the current clock map.
    package var from: WallTime
    package var to: WallTime
}

/// Reads the table `losses`.
enum Ledger {
    struct Row {
        var stream: Stream
        var kind: LossKind
        var records: Int64
        /// Records that events have reported.
        var reported: Int64
        var first: WallTime
        /// The first loss that no event has reported.
        var open: WallTime
        var last: WallTime
        var openBoot: Int64
        var lastBoot: Int64
    }

    static func rows(
        _ connection: borrowing Connection,
        _ streams: StreamList,
        _ clockMap: ClockMap
    ) throws -> [Row] {
        let rows = try connection.prepare("SELECT * FROM losses ORDER BY stream, kind")
        /// Reads boot, boottime and wall from three consecutive columns as a time.
        func moment(_ row: borrowing Statement, from column: Int32) -> WallTime {
            clockMap.resolve(row.stamp(boottime: column + 1), boot: row.required(column)).wall
        }
        return try rows.compactMap { row in
            guard let stream = streams[number: Int(row.required(0))]?.stream,
                let kind = LossKind(rawValue: row.text(1))
            else { return nil }
            return Row(
                stream: stream,
                kind: kind,
                records: row.required(2),
                reported: row.required(3),
                first: moment(row, from: 4),
                open: moment(row, from: 7),
                last: moment(row, from: 10),
                openBoot: row.required(7),
                lastBoot: row.required(10)
            )
        }
    }
}
