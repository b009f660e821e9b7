// How ids were made before version 5 of the schema.
import Records
import SQLite

extension Reader {
    /// Of a database before version 5: one random number, and those of the databases it took records from.
    func earlySeeds(of stream: Stream) throws -> [RecordIDs.Seed] {
        let generation = try query("SELECT generation FROM database")
        guard try generation.step() else {
            throw SQLiteError(code: 11, message: "no generation in the database", statement: "")
        }
        let own = generation.data(0)
        var seeds = [RecordIDs.Seed(first: 1, seed: own, layout: .database, oldFirst: 1)]
        guard version >= 2 else { return seeds }
        let rows = try query(
            "SELECT first, last, generation, old_first FROM origins WHERE stream=? ORDER BY first"
        )
        try rows.bind(Int64(stream.number), at: 1)
        while try rows.step() {
            let (first, after) = (rows.required(0), rows.required(1) + 1)
            seeds.removeAll { $0.first >= first }
            seeds.append(
                .init(
                    first: first,
                    seed: rows.data(2),
                    layout: .database,
                    oldFirst: rows.required(3)
                )
            )
            seeds.append(.init(first: after, seed: own, layout: .database, oldFirst: after))
        }
        return seeds
    }
}
