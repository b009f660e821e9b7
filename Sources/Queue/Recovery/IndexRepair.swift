// An index that says otherwise than its table.
import SQLite

/// Makes the index of the batches anew where it does not fit.
///
/// SQLite's quick check passes over that (sqlite.org/pragma.html#pragma_quick_check). A frozen batch that is not in the
/// index would never be sent, and one that is there as ready, but was uploaded, would wait for ever.
enum IndexRepair {
    static func check(_ connection: borrowing Connection) throws {
        let table = try figures(connection, "NOT INDEXED")
        guard try figures(connection, "INDEXED BY batches_by_state") != table else { return }
        try connection.executeIfThereIsRoom("REINDEX batches_by_state")
    }

    /// What the rows add up to, read from the table or from the index, which holds all of these columns.
    private static func figures(
        _ connection: borrowing Connection,
        _ way: String
    ) throws -> [Int64] {
        let row = try connection.prepare(
            """
            SELECT count(*), sum((id%65521+1)*(state%1009*65521+database%1009*31+stream%1009)),
            sum((id%65521+1)*(ifnull(done_boot, 0)%1009+ifnull(done_boottime, 0)%65521))
            FROM batches \(way)
            """
        )
        guard try row.step() else { return [] }
        return (0..<3).map { row.required($0) }
    }
}
