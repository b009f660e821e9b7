// Which frozen batches wait for their verdict.
package import Records

extension Queue {
    /// The batch of a stream that is to be sent next: of the frozen ones that with the oldest records.
    ///
    /// Not a record that stands alone and was refused: `nextRefused` has those. `except`: rows of batches to pass over.
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

    /// The next batch, numbered above `number`, of a record that stands alone and was refused.
    package func nextRefused(
        _ stream: Stream,
        after number: Int64 = 0,
        unreadable: Set<Int64> = []
    ) throws -> Batch? {
        let condition = "attempts>0 AND first=last AND id>\(number)"
        return try core.books.ready(stream, condition, "ORDER BY id", unreadable)
    }
}
