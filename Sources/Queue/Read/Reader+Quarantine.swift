// Reads quarantined batches and the open survey, with or without a running gateway.
package import Host
package import Records
import SQLite

/// A batch in quarantine, for display.
package struct QuarantinedBatch: Sendable, Equatable {
    package var batch: Batch
    /// When it was quarantined, or frozen if by an older Waypost; by the current clock map.
    package var at: WallTime
    /// The id of its first record, as sent to the server.
    package var firstID: String
}

extension Reader {
    /// Returns at most `limit` batches in quarantine, numbered above `number`, oldest first.
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
        return try rows.compactMap { row in
            guard let batch = try Batch(row, kinds, known) else { return nil }
            let at = dates.resolve(row.stamp(boottime: 15), boot: row.required(14)).wall
            return QuarantinedBatch(
                batch: batch,
                at: row.isNull(16) ? batch.sentAt : at,
                firstID: try firstID(batch)
            )
        }
    }

    /// Returns the id as sent to the server; empty for a record in an older database.
    private func firstID(_ batch: Batch) throws -> String {
        guard batch.partition.isLive else { return "" }
        return try ids(batch.stream, batch.first...batch.first).id(batch.first)
    }

    /// Returns the last declared wire name of a user stream; nil for other streams.
    package func wire(of stream: Stream) -> String? {
        let sql = "SELECT wire FROM sequences WHERE database=0 AND stream=? AND wire IS NOT NULL"
        guard let row = try? query(sql), (try? row.bind(Int64(stream.number), at: 1)) != nil,
            (try? row.step()) == true
        else { return nil }
        return row.text(0)
    }

    /// Returns name and best known start of a survey that is open or does not have a record yet.
    package func openSurvey() throws -> (name: String, start: WallTime)? {
        let row = try query("SELECT name, boot, boottime, wall FROM open_survey")
        guard try row.step() else { return nil }
        let start = try dates(through: .max).resolve(row.stamp(boottime: 2), boot: row.required(1))
        return (row.text(0), start.wall)
    }
}
