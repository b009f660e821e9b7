// Repairs an index that does not match its table.
import SQLite

/// Rebuilds the index of batches if it does not match the table.
///
/// SQLite's quick check ignores that (sqlite.org/pragma.html#pragma_quick_check). A frozen batch
/// missing from the index would never be sent. An uploaded one indexed as ready would wait forever.
enum IndexRepair {
    static func check(_ connection: borrowing Connection) throws {
        let table = try figures(connection, "NOT INDEXED")
        guard try figures(connection, "INDEXED BY batches_by_state") != table else { return }
        try connection.executeIfThereIsRoom("REINDEX batches_by_state")
    }

    /// Returns checksums of the rows, from the table or from the index, which has all columns.
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
