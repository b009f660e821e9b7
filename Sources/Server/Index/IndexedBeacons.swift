// Indexes the newest sighting of each beacon in one record file.
import SQLite
import ServerBase

/// Writes the rows in `beacons` for newly appended lines.
struct IndexedBeacons {
    private struct Sighting {
        var time = Int64.min
        var kind = ""
        /// The charge of its battery in percent; nil if the file does not have it.
        var charge: Double?
    }

    private let file: Int64
    private var newest: [String: Sighting] = [:]

    init(file: Int64) { self.file = file }

    /// Receives a number that has a series, so that a file has a limited number of beacons.
    mutating func receive(
        _ quantity: QuantityName,
        _ value: Double,
        _ kind: String,
        at time: Int64,
        _ database: borrowing Connection
    ) throws {
        let beacon = quantity.beacon
        // Ids are ASCII; other texts have several spellings that Swift takes for the same.
        guard !beacon.isEmpty, beacon.utf8.allSatisfy({ $0 < 128 }) else { return }
        let charge = Quantities.battery(quantity.key, value)?.charge
        guard charge != nil || quantity.key == QuantityName.strength else { return }
        // Goes on from the row, so that it does not depend on how the file was divided into parts.
        if newest[beacon] == nil { newest[beacon] = try stored(beacon, database) }
        newest.change(beacon, from: Sighting()) {
            guard time >= $0.time else { return }
            ($0.time, $0.kind) = (time, kind)
            $0.charge = charge ?? $0.charge
        }
    }

    private func stored(_ beacon: String, _ database: borrowing Connection) throws -> Sighting {
        let sql = "SELECT time, kind, charge FROM beacons WHERE beacon=? AND file=?"
        let row = try database.prepare(sql, beacon, file)
        guard try row.step() else { return Sighting() }
        return Sighting(time: row.required(0), kind: row.text(1), charge: row.number(2))
    }

    /// Writes the changed rows.
    func finish(_ database: borrowing Connection) throws {
        for (beacon, sighting) in newest {
            try database.run(
                """
                INSERT INTO beacons SELECT ?1, device, stream, id, ?2, ?3, ?4 FROM files WHERE id=?5
                ON CONFLICT(beacon, device, stream) DO UPDATE SET file=excluded.file, time=excluded.time,
                kind=excluded.kind, charge=excluded.charge WHERE excluded.time >= time
                """,
                row: [beacon, sighting.time, sighting.kind, sighting.charge, file]
            )
        }
    }
}
