// Which records of a stream are there.
package import Records
import SQLite

extension Reader {
    /// Runs of records that are there, in order, from a number on: of the next `limit` records at most.
    ///
    /// Empty at the end. Records may be uploaded and purged while they are read. Ends before a page that cannot be read.
    package func present(
        _ stream: Stream,
        from first: Int64,
        limit: Int64
    ) throws -> [ClosedRange<Int64>] {
        var runs: [ClosedRange<Int64>] = []
        do {
            try addPresent(stream, from: first, limit: limit, to: &runs)
        } catch let error as SQLiteError where error.isUnreadable && !runs.isEmpty {
            return runs
        }
        return runs
    }

    private func addPresent(
        _ stream: Stream,
        from first: Int64,
        limit: Int64,
        to runs: inout [ClosedRange<Int64>]
    ) throws {
        let rows = try query(
            "SELECT id FROM \(kind(of: stream).table) WHERE id>=\(first) ORDER BY id LIMIT \(limit)"
        )
        while try rows.step() {
            let id = rows.required(0)
            if let last = runs.last, last.upperBound == id - 1 {
                runs[runs.count - 1] = last.lowerBound...id
            } else {
                runs.append(id...id)
            }
        }
    }

    /// Whether an error is about what was to be read alone: it is damaged, or the disk does not give it.
    package static func isUnreadable(_ error: any Error) -> Bool {
        (error as? SQLiteError)?.isUnreadable ?? false
    }

    /// The first and the last record that are there.
    package func bounds(of stream: Stream) throws -> ClosedRange<Int64>? {
        let table = kind(of: stream).table
        // One query for both would read the whole table, with what is damaged of it.
        let rows = try query(
            "SELECT (SELECT min(id) FROM \(table)), (SELECT max(id) FROM \(table))"
        )
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

    /// A stream of the user by the name on the wire that it was declared with last.
    package func stream(onWire name: String) throws -> Stream? {
        try partitions().first { $0.isLive && wire(of: $0.stream) == name }?.stream
    }
}

extension SQLiteError {
    fileprivate var isUnreadable: Bool { isDamage || isDisk }
}
