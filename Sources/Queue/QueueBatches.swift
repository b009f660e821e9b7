// Finds the next frozen batch that waits for its verdict.
package import Records

extension Queue {
    /// Returns the frozen batch of a stream to send next: the one with the oldest records.
    ///
    /// Excludes rejected single-record batches (see `nextRefused`), and the rows in `except`.
    package func nextReady(
        _ stream: Stream,
        unreadable: Set<Int64> = [],
        except others: Set<Int64> = []
    ) throws -> Batch? {
        let list = others.map { "\($0)" }.joined(separator: ",")
        let condition = "NOT (attempts>0 AND first=last) AND id NOT IN (\(list))"
        let order = "ORDER BY database=0, database, first"
        return try core.books.ready(stream, condition, order, unreadable)
    }

    /// Returns the next rejected single-record batch, numbered above `number`.
    package func nextRefused(
        _ stream: Stream,
        after number: Int64 = 0,
        unreadable: Set<Int64> = []
    ) throws -> Batch? {
        let condition = "attempts>0 AND first=last AND id>\(number)"
        return try core.books.ready(stream, condition, "ORDER BY id", unreadable)
    }
}
