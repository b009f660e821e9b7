// Reading what is in quarantine, and the survey that goes on: beside the writer, or with no gateway at all.
package import Host
package import Records
import SQLite

/// A batch in quarantine with what a person wants to know of it.
package struct QuarantinedBatch: Sendable, Equatable {
    package var batch: Batch
    /// When it was set aside, as well as the clock map knows now; for one of an older Waypost when it was frozen.
    package var at: WallTime
    /// The id of its first record, as the server was told.
    package var firstID: String
}

extension Reader {
    /// Batches in quarantine, oldest first: at most `limit`, of those numbered above `number`.
    package func quarantine(after number: Int64 = 0, limit: Int64) throws -> [QuarantinedBatch] {
        let partitions = try partitions().map { ($0, StreamCounters()) }
        let known = Dictionary(partitions, uniquingKeysWith: { first, _ in first })
        let rows = try query(
            """
            \(Batch.columns.replacing(text: " FROM", with: ", done_boot, done_boottime, done_wall FROM"))
            WHERE state=2 AND id>\(number) ORDER BY id LIMIT \(limit)
            """
        )
        let dates = try dates(through: .max)
        var found: [QuarantinedBatch] = []
        while try rows.step() {
            guard let batch = try Batch(rows, kinds, known) else { continue }
            let at = dates.resolve(rows.stamp(boottime: 14), boot: rows.required(13)).wall
            found.append(
                QuarantinedBatch(
                    batch: batch,
                    at: rows.isNull(15) ? batch.sentAt : at,
                    firstID: try firstID(batch)
                )
            )
        }
        return found
    }

    /// As the server was told; empty where its database does not tell any more.
    private func firstID(_ batch: Batch) throws -> String {
        guard batch.partition.isLive else { return "" }
        return try ids(batch.stream, batch.first...batch.first).id(batch.first)
    }

    /// The name on the wire that a stream of the user was declared with last; nil for any other.
    package func wire(of stream: Stream) -> String? {
        let sql = "SELECT wire FROM sequences WHERE database=0 AND stream=? AND wire IS NOT NULL"
        guard let row = try? query(sql), (try? row.bind(Int64(stream.number), at: 1)) != nil,
            (try? row.step()) == true
        else { return nil }
        return row.text(0)
    }

    /// The survey that goes on, or ended without its record: its name, and when it began, as far as is known.
    package func openSurvey() throws -> (name: String, start: WallTime)? {
        let row = try query("SELECT name, boot, boottime, wall FROM open_survey")
        guard try row.step() else { return nil }
        let start = try dates(through: .max).resolve(row.stamp(boottime: 2), boot: row.required(1))
        return (row.text(0), start.wall)
    }
}
