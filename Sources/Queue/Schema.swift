// The tables, and how a database comes to its newest version.
import Host
import Records
import SQLite

/// The database's shape.
///
/// A table a stream in rowid order, typed columns, no secondary index: a batch is a range of rowids, so
/// marking 30,000 rows uploaded is one row.
enum Schema {
    /// Each step leads from the version before it to the next, in one transaction.
    ///
    /// `MigrationTests` shows how a step is tested.
    static let steps = [
        Step(statements: version1, mark: "sequences.pending_bytes"),
        Step(statements: version2, mark: "batches.form"),
        Step(statements: version3, mark: "marks.kind"),
    ]

    /// The statements that make one version of the version before it.
    struct Step {
        var statements: String
        /// A column, as `table.column`, that earlier versions do not have: a version number in the header can change
        /// by one bit.
        var mark: String
    }

    static var newest: Int64 { Int64(steps.count) }

    /// Opens the writer's connection and brings the database to the newest version.
    static func open(path: String, vfs: String? = nil) throws -> Connection {
        let connection = try Connection(path: path, access: .readWrite, vfs: vfs)
        // Before anything else: what others or a newer Waypost made is left as it is, to the byte.
        try SchemaCheck.refuseOthers(connection)
        if try version(connection) == 0 {
            // A commit writes whole pages: small ones, for a hundred sightings are 3 kB.
            try connection.execute("PRAGMA page_size=1024")
            // Must come before the first table, or freed pages could never be given back. Later it would only
            // write the header at each start, which a full disk does not take.
            try connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        }
        try connection.execute("PRAGMA journal_mode=WAL")
        // A commit is on the card when it returns: a power cut costs at most the open transaction.
        try connection.execute("PRAGMA synchronous=FULL")
        // Debian's build zeroes every freed page otherwise, which doubles what a delete writes.
        try connection.execute("PRAGMA secure_delete=FAST")
        try connection.execute("PRAGMA journal_size_limit=4194304")
        // In pages; 4 MB as with pages of the usual size, or checkpoints would be four times as many.
        try connection.execute("PRAGMA wal_autocheckpoint=4000")
        // Half a megabyte of page cache: rows are appended, so more would only cost memory.
        try connection.execute("PRAGMA cache_size=-512")
        // A journal that is found may hold what a failed sync gave up: it reads well, and is gone at a power
        // cut with all that was committed after it. Written back and synced it stays.
        try connection.executeIfThereIsRoom("PRAGMA wal_checkpoint(TRUNCATE)")
        try migrate(connection)
        try SchemaCheck.check(connection)
        try IndexRepair.check(connection)
        return connection
    }

    /// The version that a database has, 0 for a new one; throws for one that is not ours to open.
    private static func version(
        _ connection: borrowing Connection,
        _ steps: [Step] = Schema.steps
    ) throws -> Int64 {
        let version = try connection.integer("PRAGMA user_version") ?? 0
        let newest = Int64(steps.count)
        // That the tables are of the newest is checked at each start.
        if version == newest { return version }
        let tables = try SchemaCheck.version(of: connection, steps)
        if version == tables { return version }
        // A newer Waypost has tables of its own, and none will have had so many versions: a damaged header.
        guard (newest..<10_000).contains(version), try !SchemaCheck.isOurs(connection) else {
            let message = "schema version \(version) over tables of \(tables)"
            throw SQLiteError(code: 11, message: message, statement: "")
        }
        throw SchemaTooNewError(version: version, newest: newest)
    }

    /// Throws for a database that `open` would not take as it is; only reads.
    static func check(_ connection: borrowing Connection) throws {
        try SchemaCheck.refuseOthers(connection)
        if try version(connection) == newest { try SchemaCheck.check(connection) }
    }

    /// Brings a database to the version that the last of the steps makes.
    static func migrate(
        _ connection: borrowing Connection,
        by steps: [Step] = Schema.steps
    ) throws {
        let version = try Self.version(connection, steps)
        for (before, step) in steps.enumerated().dropFirst(Int(max(0, version))) {
            try connection.execute("BEGIN IMMEDIATE")
            try connection.execute(step.statements)
            try connection.execute("PRAGMA user_version=\(before + 1)")
            try connection.execute("COMMIT")
        }
    }

    /// Times: `boottime` and `wall` in ms, `boot` a row of `boots`.
    ///
    /// - `database`: a random number that no other database has; its row is rewritten to see if the disk is back.
    /// - `boots`: each boot of the device.
    /// - `clock_map`: pairs of the boot time and the wall time; `source`: who vouched for the wall time.
    /// - `numbers`: the next row of tables that others refer to; such a number is never used again.
    /// - `sequences`: by database (0: this one) and stream the next number and what became of those before it.
    ///   `wire`: the name on the wire that a stream of the user was declared with last. `seeded`: `first` of the
    ///   newest of its `id_seeds`; without that one, which damage can remove, records from there on would get ids
    ///   of others. `pending_bytes`: stored bytes of the records that are pending.
    /// - `id_seeds`: the random number that ids are made of from `first` on.
    /// - `gone`: ranges of numbers that are over and in no batch.
    /// - `batches`: frozen ranges; `done_wall`: the wall time when it was uploaded; `resend`: an uploaded batch that
    ///   is to be sent again.
    ///   `form`: 0 for rows, 1 for columns.
    /// - `held`: chunks that are not pending, for nobody has marked them; `numbers` has their bytes. `asked`:
    ///   pending chunks that are sent after those that records have marked.
    /// - `marks`: spans of boot time of a boot, or of wall time (`boot` 0), in ms, whose sound is wanted; `kind`: 0
    ///   of a record, 1 of a person. Those that chunks may still come for.
    /// - `databases`: older databases, which are drained beside this one.
    /// - `runs`, `segments`, `chunks`: audio; `runs.chunked`: the last segment that was in a chunk.
    /// - `losses`: the loss ledger.
    /// - `traffic`: bytes sent and received by day (days since 1970, UTC).
    /// - `surveys`: finished surveys. `open_survey`: the running one (at most one row); its sightings are
    ///   those of `sightings` from `first` on, which are kept until it ends. `survey_track`: the
    ///   positions of the gateway during it.
    /// - `memos`: values that other parts need after a restart.
    /// - `sum`: the checksum of the record's bytes (`Checksum`); NULL for records that fit into the page of their
    ///   row.
    private static let version1 = """
        CREATE TABLE database(generation BLOB NOT NULL);
        INSERT INTO database VALUES (randomblob(16));
        CREATE TABLE boots(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL UNIQUE);
        CREATE TABLE clock_map(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, synced INTEGER NOT NULL, source TEXT);
        CREATE TABLE location(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, mode INTEGER NOT NULL,
            latitude_e7 INTEGER NOT NULL, longitude_e7 INTEGER NOT NULL, altitude_dm INTEGER,
            speed_cm_s INTEGER, course_decideg INTEGER, horizontal_dm INTEGER, vertical_dm INTEGER,
            satellites INTEGER, receiver_time INTEGER);
        CREATE TABLE beacons(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, beacon_id TEXT NOT NULL,
            address INTEGER NOT NULL, address_type INTEGER NOT NULL, tx_power INTEGER,
            last_sighting INTEGER);
        CREATE TABLE sightings(id INTEGER PRIMARY KEY, beacon INTEGER NOT NULL, rssi INTEGER,
            boot INTEGER NOT NULL, boottime INTEGER NOT NULL, wall INTEGER NOT NULL, payload BLOB,
            sum INTEGER);
        CREATE TABLE events(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, kind TEXT NOT NULL,
            source TEXT NOT NULL, detail TEXT NOT NULL, sum INTEGER);
        CREATE TABLE runs(id INTEGER PRIMARY KEY, codec INTEGER NOT NULL, rate INTEGER NOT NULL,
            device TEXT NOT NULL, preskip INTEGER NOT NULL, overlap_segments INTEGER NOT NULL,
            chunked INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE segments(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, frames INTEGER NOT NULL,
            mean_square REAL NOT NULL, boot INTEGER NOT NULL, boottime INTEGER NOT NULL,
            wall INTEGER NOT NULL, data BLOB NOT NULL, sum INTEGER);
        CREATE TABLE chunks(id INTEGER PRIMARY KEY, run INTEGER NOT NULL,
            first_segment INTEGER NOT NULL, segments INTEGER NOT NULL, frames INTEGER NOT NULL,
            overlap_frames INTEGER NOT NULL, mean_square REAL NOT NULL, bytes INTEGER NOT NULL,
            boot INTEGER NOT NULL, boottime INTEGER NOT NULL, wall INTEGER NOT NULL);
        CREATE TABLE surveys(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, name TEXT NOT NULL,
            start_boot INTEGER NOT NULL, start_boottime INTEGER NOT NULL,
            start_wall INTEGER NOT NULL, report TEXT NOT NULL, sum INTEGER);
        CREATE TABLE open_survey(name TEXT NOT NULL, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, first INTEGER NOT NULL,
            last INTEGER, end_boottime INTEGER, end_wall INTEGER, end_boot INTEGER);
        CREATE TABLE survey_track(boot INTEGER NOT NULL, boottime INTEGER NOT NULL,
            latitude_e7 INTEGER NOT NULL, longitude_e7 INTEGER NOT NULL,
            PRIMARY KEY(boot, boottime)) WITHOUT ROWID;
        CREATE TABLE batches(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL, stream INTEGER NOT NULL,
            first INTEGER NOT NULL, last INTEGER NOT NULL, state INTEGER NOT NULL,
            attempts INTEGER NOT NULL, clock_map INTEGER NOT NULL, sent_at INTEGER NOT NULL,
            synced INTEGER NOT NULL, app_version TEXT NOT NULL, error TEXT,
            done_boot INTEGER, done_boottime INTEGER, done_wall INTEGER,
            database INTEGER NOT NULL DEFAULT 0, resend INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX batches_by_state ON
            batches(state, database, stream, done_boot, done_boottime);
        CREATE INDEX batches_to_resend ON batches(id) WHERE resend=1;
        CREATE TABLE gone(database INTEGER NOT NULL, stream INTEGER NOT NULL, first INTEGER NOT NULL,
            last INTEGER NOT NULL, PRIMARY KEY(database, stream, first)) WITHOUT ROWID;
        CREATE TABLE sequences(database INTEGER NOT NULL, stream INTEGER NOT NULL,
            name TEXT NOT NULL, next INTEGER NOT NULL DEFAULT 1, uploaded INTEGER NOT NULL DEFAULT 0,
            evicted INTEGER NOT NULL DEFAULT 0, not_kept INTEGER NOT NULL DEFAULT 0, wire TEXT,
            seeded INTEGER NOT NULL DEFAULT 1, pending_bytes INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY(database, stream)) WITHOUT ROWID;
        CREATE TABLE id_seeds(stream INTEGER NOT NULL, first INTEGER NOT NULL, seed BLOB NOT NULL,
            PRIMARY KEY(stream, first)) WITHOUT ROWID;
        CREATE TABLE numbers(name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO numbers VALUES
            ('segments', 1), ('runs', 1), ('beacons', 1), ('batches', 1), ('databases', 1);
        CREATE TABLE databases(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
            state INTEGER NOT NULL, is_known INTEGER NOT NULL DEFAULT 1);
        CREATE TABLE losses(stream INTEGER NOT NULL, kind TEXT NOT NULL, records INTEGER NOT NULL,
            told INTEGER NOT NULL, first_boot INTEGER NOT NULL, first_boottime INTEGER NOT NULL,
            first_wall INTEGER NOT NULL, open_boot INTEGER NOT NULL, open_boottime INTEGER NOT NULL,
            open_wall INTEGER NOT NULL, last_boot INTEGER NOT NULL, last_boottime INTEGER NOT NULL,
            last_wall INTEGER NOT NULL, PRIMARY KEY(stream, kind)) WITHOUT ROWID;
        CREATE TABLE traffic(day INTEGER PRIMARY KEY, sent INTEGER NOT NULL,
            received INTEGER NOT NULL);
        CREATE TABLE memos(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        """

    private static let version2 = "ALTER TABLE batches ADD COLUMN form INTEGER NOT NULL DEFAULT 0"

    private static let version3 = """
        CREATE TABLE held(first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
        CREATE TABLE asked(first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
        CREATE TABLE marks(boot INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            kind INTEGER NOT NULL);
        INSERT INTO numbers VALUES ('held_bytes', 0);
        """
}

/// The database is that of another program; it is left as it is.
package struct ForeignDatabaseError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The name of one of its tables.
    package var table: String

    package var description: String {
        "the database is not one of Waypost: it has a table \(table.plainWords(atMost: 40)); "
            + "move it away, or set another state_directory"
    }
}

/// The database was written by a newer Waypost; it is left as it is.
package struct SchemaTooNewError: Error, Sendable, Equatable, CustomStringConvertible {
    package var version: Int64
    package var newest: Int64

    package init(version: Int64, newest: Int64) {
        self.version = version
        self.newest = newest
    }

    package var description: String {
        "the database has schema version \(version), this Waypost knows up to \(newest): "
            + "install the newer Waypost again, or move the database away"
    }
}
