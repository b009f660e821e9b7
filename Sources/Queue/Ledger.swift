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
        var told: Int64
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
        var ledger: [Row] = []
        while try rows.step() {
            guard let stream = streams[number: Int(rows.required(0))]?.stream,
                let kind = LossKind(rawValue: rows.text(1))
            else { continue }
            ledger.append(
                Row(
                    stream: stream,
                    kind: kind,
                    records: rows.required(2),
                    told: rows.required(3),
                    first: moment(rows, from: 4),
                    open: moment(rows, from: 7),
                    last: moment(rows, from: 10),
                    openBoot: rows.required(7),
                    lastBoot: rows.required(10)
                )
            )
        }
        return ledger
    }
}
