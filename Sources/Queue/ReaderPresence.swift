// Which records of a stream are there.
package import Streams
internal import SQLite

extension Reader {
    /// Runs of records that are there, in order, from a number on: of the next `limit` records at most.
    ///
    /// Empty at the end. Records may be uploaded and purged while they are read.
    package func present(
        _ stream: Stream,
        from first: Int64,
        limit: Int64
    ) throws -> [ClosedRange<Int64>] {
        let rows = try query(
            "SELECT id FROM \(kind(of: stream).table) WHERE id>=\(first) ORDER BY id LIMIT \(limit)"
        )
        var runs: [ClosedRange<Int64>] = []
        while try rows.step() {
            let id = rows.required(0)
            if let last = runs.last, last.upperBound == id - 1 {
                runs[runs.count - 1] = last.lowerBound...id
            } else {
                runs.append(id...id)
            }
        }
        return runs
    }

    /// The first and the last record that are there.
    package func bounds(of stream: Stream) throws -> ClosedRange<Int64>? {
        let rows = try query("SELECT min(id), max(id) FROM \(kind(of: stream).table)")
        guard try rows.step(), let first = rows.integer(0), let last = rows.integer(1) else {
            return nil
        }
        return first...last
    }

    /// A stream of this database by its name, those of the user included.
    package func stream(named name: String) throws -> Stream? {
        if let known = kinds.streams.first(where: { $0.name == name }) { return known }
        return try partitions().first { $0.isLive && $0.stream.name == name }?.stream
    }
}
