// The forwarder's checkpoints and counts, in a database.
import SQLite
import ServerBase

/// A checkpoint: how far a file was forwarded.
struct InfluxMark: Equatable {
    /// Bytes, up to the end of a line.
    var offset: Int64 = 0
    /// Lines up to the offset.
    var lines: Int64 = 0
    /// `LineFile.tail` at the offset; detects a file that was replaced.
    var tail: [UInt8] = []
}

/// Counts since the first point that was sent to this InfluxDB.
struct InfluxCounts: Sendable, Equatable {
    /// Points that InfluxDB has accepted.
    var points: Int64 = 0
    /// Points that InfluxDB has refused, each on its own.
    var refused: Int64 = 0
    /// Records, and members of records, that no point can hold.
    var leftOut: Int64 = 0
}

/// The database of checkpoints; used by one thread.
final class InfluxBook {
    private static let tables = """
        CREATE TABLE IF NOT EXISTS places(path TEXT PRIMARY KEY, offset INTEGER NOT NULL, lines INTEGER NOT NULL,
        tail BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS target(url TEXT NOT NULL, points INTEGER NOT NULL, refused INTEGER NOT NULL,
        left_out INTEGER NOT NULL, witness TEXT);
        """

    private let database: Connection

    static func path(in directory: String) -> String {
        "\(directory)/.receiver-influx.sqlite"
    }

    /// Opens it; starts over for another address, because that InfluxDB has other data.
    init(directory: String, url: String) throws {
        database = try Connection(path: Self.path(in: directory), access: .readWrite)
        // NORMAL: a power cut may lose the last checkpoints; resending writes the same points.
        try database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
        try database.execute(Self.tables)
        guard try target() != url else { return }
        try database.transaction {
            try $0.execute("DELETE FROM places; DELETE FROM target")
            try $0.run("INSERT INTO target VALUES (?,0,0,0,NULL)", url)
        }
    }

    private func target() throws -> String? {
        let row = try database.prepare("SELECT url FROM target")
        return try row.step() ? row.text(0) : nil
    }

    func counts() throws -> InfluxCounts {
        let row = try database.prepare("SELECT points, refused, left_out FROM target")
        guard try row.step() else { return InfluxCounts() }
        return InfluxCounts(
            points: row.required(0),
            refused: row.required(1),
            leftOut: row.required(2)
        )
    }

    func mark(of path: String) throws -> InfluxMark {
        let row = try database.prepare("SELECT offset, lines, tail FROM places WHERE path=?", path)
        guard try row.step() else { return InfluxMark() }
        return InfluxMark(offset: row.required(0), lines: row.required(1), tail: row.data(2))
    }

    /// Returns a point that InfluxDB has accepted; nil before the first.
    func witness() throws -> String? {
        let row = try database.prepare("SELECT witness FROM target WHERE witness IS NOT NULL")
        return try row.step() ? row.text(0) : nil
    }

    /// Stores checkpoints after InfluxDB has accepted or refused the points; adds to the counts.
    func record(_ marks: [String: InfluxMark], _ witness: String?, _ added: InfluxCounts)
        throws
    {
        try database.transaction { database in
            for (path, mark) in marks {
                try database.run(
                    "INSERT OR REPLACE INTO places VALUES (?,?,?,?)",
                    row: [path, mark.offset, mark.lines, mark.tail]
                )
            }
            if let witness { try database.run("UPDATE target SET witness=?", witness) }
            try database.run(
                "UPDATE target SET points=points+?, refused=refused+?, left_out=left_out+?",
                row: [added.points, added.refused, added.leftOut]
            )
        }
    }
}
