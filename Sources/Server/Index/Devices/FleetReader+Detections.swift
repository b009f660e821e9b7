// Reads what programs have recognised in the sound, from the index.
package import ServerBase
import SQLite

extension FleetReader {
    /// The maximum number of species of a stream; the rest are counted together.
    private static let maxSpecies = 200

    /// Returns the species that a device's streams named on the days from one to another.
    ///
    /// The names are those of the stream and of the species; "" for species beyond the limit.
    package func detections(of device: String, from: Day, to: Day) throws -> [String: [String:
        DetectedSpecies]]
    {
        let row = try database.prepare(
            """
            SELECT stream, species, detections.records, best, at, detections.first, detections.last FROM files
            JOIN detections ON file=id WHERE device=?1 AND stream IN (SELECT stream FROM latest WHERE device=?1)
            AND date >= ?2 AND date <= ?3 LIMIT 100000
            """,
            device,
            from.name,
            to.name
        )
        var streams: [String: [String: DetectedSpecies]] = [:]
        while try row.step() {
            let one = DetectedSpecies(
                row.required(2),
                best: row.number(3) ?? 0,
                at: row.required(4),
                first: row.required(5),
                last: row.required(6)
            )
            streams.change(row.text(0), from: [:]) { species in
                let name = species.count <= Self.maxSpecies ? row.text(1) : ""
                let key = species[row.text(1)] == nil ? name : row.text(1)
                species[key] = species[key].map { $0.adding(one) } ?? one
            }
        }
        return streams
    }
}
