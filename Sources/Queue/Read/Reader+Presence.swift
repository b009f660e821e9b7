// Finds which records of a stream exist.
package import Records
import SQLite

extension Reader {
    /// Returns ranges of existing records in order, from `first` on; at most `limit` records.
    ///
    /// Empty at the end. Records may be uploaded and purged in parallel. Stops at an unreadable
    /// page.
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

    /// Whether an error concerns only the data being read: damage, or a disk error.
    package static func isUnreadable(_ error: any Error) -> Bool {
        (error as? SQLiteError)?.isUnreadable ?? false
    }

    /// Returns the first and last existing record.
    package func bounds(of stream: Stream) throws -> ClosedRange<Int64>? {
        let table = kind(of: stream).table
        // One query for both would read the whole table, including damaged pages.
        let rows = try query(
            "SELECT (SELECT min(id) FROM \(table)), (SELECT max(id) FROM \(table))"
        )
        guard try rows.step(), let first = rows.integer(0), let last = rows.integer(1) else {
            return nil
        }
        return first...last
    }

    /// Returns a stream of this database, built-in or of the user, by its name.
    package func stream(named name: String) throws -> Stream? {
        if let known = kinds.streams.first(where: { $0.name == name }) { return known }
        return try partitions().first { $0.isLive && $0.stream.name == name }?.stream
    }

    /// Returns a user stream by the last wire name it was declared with.
    package func stream(onWire name: String) throws -> Stream? {
        try partitions().first { $0.isLive && wire(of: $0.stream) == name }?.stream
    }
}

extension SQLiteError {
    fileprivate var isUnreadable: Bool { isDamage || isDisk }
}
