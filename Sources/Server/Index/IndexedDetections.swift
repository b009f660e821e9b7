// Indexes what a program has recognised in the sound: the species that a record file names.
import SQLite
import ServerBase

/// Writes the rows in `detections` for newly appended lines.
struct IndexedDetections {
    /// The maximum number of species of a file; the rest are counted together.
    private static let maxSpecies = 200
    /// Bytes.
    private static let longestName = 200

    private let file: Int64
    /// The species of the file; nil until they are needed.
    private var known: Set<String>?
    private var found: [String: DetectedSpecies] = [:]

    init(file: Int64) { self.file = file }

    /// Receives a record; most are not detections.
    mutating func receive(
        _ line: RecordLine,
        at time: Int64,
        _ database: borrowing Connection
    ) throws {
        guard let species = line.text("species"), let confidence = line.number("confidence"),
            abs(confidence) < 1e15
        else { return }
        if known == nil {
            let sql = "SELECT species FROM detections WHERE file=?"
            known = Set(try database.rows(sql, file) { $0.text(0) })
        }
        let isKnown = known?.contains(species) ?? false
        let hasRoom = known?.count ?? 0 < Self.maxSpecies
        let isPlain = species.utf8.count <= Self.longestName && !species.utf8.contains(0)
        let name = isKnown || hasRoom && isPlain ? species : ""
        known?.insert(name)
        let one = DetectedSpecies(1, best: confidence, at: time, first: time, last: time)
        found[name] = found[name].map { $0.adding(one) } ?? one
    }

    /// Adds to the rows what was found.
    func finish(_ database: borrowing Connection) throws {
        for (species, part) in found {
            try database.run(
                """
                INSERT INTO detections VALUES (?,?,?,?,?,?,?) ON CONFLICT(file, species) DO UPDATE SET
                records=records+excluded.records, at=CASE WHEN excluded.best > best THEN excluded.at
                WHEN excluded.best = best THEN min(at, excluded.at) ELSE at END, best=max(best, excluded.best),
                first=min(first, excluded.first), last=max(last, excluded.last)
                """,
                row: [file, species, part.records, part.best, part.at, part.first, part.last]
            )
        }
    }
}
