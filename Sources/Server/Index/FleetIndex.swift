// The index behind the fleet page, a database that can be rebuilt from the record files.
import SQLite
import ServerBase

/// The location and the tables of the index.
///
/// Each row comes from one record file, so that a file can be removed and read again. No row
/// depends on the order in which files were read.
enum FleetIndex {
    /// Incremented with each change of the tables; an index of another version is rebuilt.
    private static let version: Int64 = 6

    static func path(in directory: String) -> String {
        "\(directory)/.receiver-index.sqlite"
    }

    /// The tables; times are milliseconds since 1970.
    ///
    /// `files`: the checkpoint of each file (`length` in bytes, and the `tail` before it); `broken`
    /// counts lines that are not records. `latest`: the newest record of each stream; its line is
    /// "" if long. `states`: the newest event of each source and of each kind that reports a
    /// source's state. Both leave out records with a date in the future. `events`: all events;
    /// `records` is the number in the event's detail, NULL if there is none or the event's date is
    /// in the future. `slots`: the number of records in each ten minutes since 1970, and the bytes of
    /// the file from the first to the last of them. `series`: each quantity of a file, its last value,
    /// its highest one, and the kind of its beacon ("" for both without one). `readings`: the values of
    /// a series in each slot; the page and the read API draw from it. `left_out`: values for which a
    /// file had too many series. `effort`: of each source of a day, the milliseconds in each state, the
    /// records that effort counts, the reason of the worst interval, and the end of one that is longer
    /// than the day. `beacons`: the newest sighting of each beacon by a stream of a device, none with a
    /// date in the future; `charge` is in percent. `detections`: the species that a file names, and the
    /// time of the most confident one ("" for those beyond the limit).
    private static let tables = """
        CREATE TABLE files(id INTEGER PRIMARY KEY, device TEXT NOT NULL, stream TEXT NOT NULL, date TEXT NOT NULL,
        length INTEGER NOT NULL, tail BLOB NOT NULL, records INTEGER NOT NULL, broken INTEGER NOT NULL,
        first INTEGER, last INTEGER, left_out INTEGER NOT NULL, UNIQUE (device, stream, date));
        CREATE TABLE latest(device TEXT, stream TEXT, time INTEGER NOT NULL, id TEXT NOT NULL, file INTEGER NOT NULL,
        line TEXT NOT NULL, PRIMARY KEY (device, stream)) WITHOUT ROWID;
        CREATE TABLE events(device TEXT, time INTEGER, id TEXT, file INTEGER NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, records INTEGER, detail TEXT NOT NULL, PRIMARY KEY (device, time, id)) WITHOUT ROWID;
        CREATE INDEX events_time ON events(time);
        CREATE INDEX events_file ON events(file);
        CREATE TABLE states(device TEXT, kind TEXT, source TEXT, time INTEGER NOT NULL, id TEXT NOT NULL,
        file INTEGER NOT NULL, detail TEXT NOT NULL, PRIMARY KEY (device, kind, source)) WITHOUT ROWID;
        CREATE INDEX states_time ON states(device, time);
        CREATE TABLE slots(file INTEGER, slot INTEGER, records INTEGER NOT NULL, start INTEGER NOT NULL,
        end INTEGER NOT NULL, PRIMARY KEY (file, slot)) WITHOUT ROWID;
        CREATE TABLE series(id INTEGER PRIMARY KEY, file INTEGER NOT NULL, beacon TEXT NOT NULL, key TEXT NOT NULL,
        kind TEXT NOT NULL, records INTEGER NOT NULL, last INTEGER NOT NULL, value REAL NOT NULL, high REAL NOT NULL,
        UNIQUE (file, beacon, key));
        CREATE TABLE readings(file INTEGER, slot INTEGER, series INTEGER, records INTEGER NOT NULL, total REAL NOT NULL,
        low REAL NOT NULL, high REAL NOT NULL, PRIMARY KEY (file, slot, series)) WITHOUT ROWID;
        CREATE TABLE effort(device TEXT, source TEXT, date TEXT, file INTEGER, records INTEGER NOT NULL,
        worst INTEGER NOT NULL, reason TEXT NOT NULL, until INTEGER NOT NULL, recorded INTEGER NOT NULL,
        scheduled_off INTEGER NOT NULL, failed INTEGER NOT NULL, off INTEGER NOT NULL, unknown INTEGER NOT NULL,
        PRIMARY KEY (device, source, date, file)) WITHOUT ROWID;
        CREATE INDEX effort_file ON effort(file);
        CREATE TABLE beacons(beacon TEXT, device TEXT, stream TEXT, file INTEGER NOT NULL, time INTEGER NOT NULL,
        kind TEXT NOT NULL, charge REAL, PRIMARY KEY (beacon, device, stream)) WITHOUT ROWID;
        CREATE INDEX beacons_time ON beacons(time);
        CREATE INDEX beacons_charge ON beacons(charge) WHERE charge IS NOT NULL;
        CREATE TABLE detections(file INTEGER, species TEXT, records INTEGER NOT NULL, best REAL NOT NULL, at INTEGER NOT NULL,
        first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (file, species)) WITHOUT ROWID;
        """
    private static let names = [
        "files", "latest", "events", "states", "slots", "series", "readings", "effort", "beacons",
        "detections",
    ]

    /// Opens it for writing; creates it if it is missing or of another version.
    static func open(in directory: String) throws -> Connection {
        let database = try Connection(path: path(in: directory), access: .readWrite)
        // NORMAL: a power cut may lose the last rows, which are then read again.
        // Small pages, as in the archive's database.
        try database.execute("PRAGMA page_size=2048")
        try database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
        try database.execute("PRAGMA journal_size_limit=16777216")
        if try !isCurrent(database) { try clear(database) }
        return database
    }

    /// Opens it for reading; nil if there is none of this version.
    static func openToRead(in directory: String) throws -> Connection? {
        let path = path(in: directory)
        guard fileSize(path) != nil else { return nil }
        let database = try Connection(path: path, access: .readOnly)
        guard try isCurrent(database) else { return nil }
        return consume database
    }

    private static func isCurrent(_ database: borrowing Connection) throws -> Bool {
        try database.integer("PRAGMA user_version") == version
    }

    /// Returns whether all files have been read; an incomplete index may show old problems.
    static func isWhole(_ database: borrowing Connection) throws -> Bool {
        try database.integer("PRAGMA application_id") == 0
    }

    /// Empties the index and marks it as incomplete until `recordWhole`.
    static func clear(_ database: borrowing Connection) throws {
        let drops = names.map { "DROP TABLE IF EXISTS \($0);" }.joined()
        let marks = "PRAGMA user_version=\(version); PRAGMA application_id=1"
        try database.transaction { try $0.execute("\(drops) \(tables) \(marks)") }
    }

    /// Marks the index as complete, after all files have been read.
    static func recordWhole(_ database: borrowing Connection) throws {
        guard try !isWhole(database) else { return }
        try database.execute("PRAGMA application_id=0")
    }

    /// Creates an empty index at a path, for `index check` to fill and compare.
    static func scratch(_ path: String) throws -> Connection {
        let database = try Connection(path: path, access: .readWrite)
        try database.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")
        try clear(database)
        return database
    }
}
