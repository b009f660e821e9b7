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
    private var known: Set<[UInt8]>?
    /// By the bytes of a name, as the database compares them.
    private var found: [[UInt8]: DetectedSpecies] = [:]

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
            known = Set(try database.rows(sql, file) { Array($0.text(0).utf8) })
        }
        let bytes = Array(species.utf8)
        let isKnown = known?.contains(bytes) ?? false
        let hasRoom = known?.count ?? 0 < Self.maxSpecies
        let isPlain = bytes.count <= Self.longestName && !bytes.contains(0)
        let name = isKnown || hasRoom && isPlain ? bytes : []
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
                row: [
                    file, String(decoding: species, as: UTF8.self), part.records, part.best,
                    part.at, part.first,
                    part.last,
                ]
            )
        }
    }
}
