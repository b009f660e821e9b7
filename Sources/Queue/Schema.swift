// The tables, and how a database comes to its newest version.
import Records
import SQLite

/// The database's shape.
///
/// A table a stream in rowid order, typed columns, no secondary index: a batch is a range of rowids, so
/// marking 30,000 rows uploaded is one row.
enum Schema {
    /// Each step leads from one version (its index) to the next, in one transaction.
    static let steps = [
        version1, version2, version3, version4, version5, version6, version7, version8,
    ]

    /// A column of each version that those before it do not have: a number in the header is one bit away from another.
    static let marks = [
        "sightings.rssi", "losses.records", "traffic.sent", "survey_track.boot", "sequences.next",
        "segments.sum", "sightings.sum", "sequences.pending_bytes",
    ]

    static var newest: Int64 { Int64(steps.count) }

    /// Opens the writer's connection and brings the database to the newest version.
    static func open(path: String, vfs: String? = nil) throws -> Connection {
        let connection = try Connection(path: path, access: .readWrite, vfs: vfs)
        // Before anything else: what a newer Waypost made is left as it is, to the byte.
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
    private static func version(_ connection: borrowing Connection) throws -> Int64 {
        let version = try connection.integer("PRAGMA user_version") ?? 0
        // That the tables are of the newest is checked at each start.
        if version == newest { return version }
        let tables = try SchemaCheck.version(of: connection)
        if version == tables { return version }
        // A newer Waypost has tables of its own, and none will have had so many versions: a damaged header.
        guard (newest..<10_000).contains(version), try !SchemaCheck.isOurs(connection) else {
            let message = "schema version \(version) over tables of \(tables)"
            throw SQLiteError(code: 11, message: message, statement: "")
        }
        throw SchemaTooNew(version: version, newest: newest)
    }

    static func migrate(_ connection: borrowing Connection) throws {
        let version = try Self.version(connection)
        for step in steps.indices.dropFirst(Int(max(0, version))) {
            try connection.execute("BEGIN IMMEDIATE")
            try connection.execute(steps[step])
            if step + 1 == 5 { try SchemaRepair.closeHoles(connection) }
            if step + 1 == 7 { try SchemaRepair.addSums(connection) }
            try connection.execute("PRAGMA user_version=\(step + 1)")
            try connection.execute("COMMIT")
        }
    }

    /// Times: `boottime` and `wall` in ms, `boot` a row of boots.
    private static let version1 = """
        CREATE TABLE database(generation BLOB NOT NULL);
        INSERT INTO database VALUES (randomblob(16));
        CREATE TABLE boots(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL UNIQUE);
        CREATE TABLE clock_map(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, synced INTEGER NOT NULL);
        CREATE TABLE streams(id INTEGER PRIMARY KEY, purged_through INTEGER NOT NULL DEFAULT 0,
            uploaded INTEGER NOT NULL DEFAULT 0, evicted INTEGER NOT NULL DEFAULT 0,
            not_kept INTEGER NOT NULL DEFAULT 0);
        INSERT INTO streams(id) VALUES (1), (2), (3), (4);
        CREATE TABLE location(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, mode INTEGER NOT NULL,
            latitude_e7 INTEGER NOT NULL, longitude_e7 INTEGER NOT NULL, altitude_dm INTEGER,
            speed_cm_s INTEGER, course_decideg INTEGER, horizontal_dm INTEGER, vertical_dm INTEGER,
            satellites INTEGER, receiver_time INTEGER);
        CREATE TABLE beacons(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, beacon_id TEXT NOT NULL,
            address INTEGER NOT NULL, address_type INTEGER NOT NULL, tx_power INTEGER,
            last_sighting INTEGER);
        CREATE TABLE sightings(id INTEGER PRIMARY KEY, beacon INTEGER NOT NULL, rssi INTEGER,
            boot INTEGER NOT NULL, boottime INTEGER NOT NULL, wall INTEGER NOT NULL, payload BLOB);
        CREATE TABLE events(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, kind TEXT NOT NULL,
            source TEXT NOT NULL, detail TEXT NOT NULL);
        CREATE TABLE runs(id INTEGER PRIMARY KEY, codec INTEGER NOT NULL, rate INTEGER NOT NULL,
            device TEXT NOT NULL, preskip INTEGER NOT NULL, overlap_segments INTEGER NOT NULL);
        CREATE TABLE segments(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, frames INTEGER NOT NULL,
            mean_square REAL NOT NULL, boot INTEGER NOT NULL, boottime INTEGER NOT NULL,
            wall INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE TABLE chunks(id INTEGER PRIMARY KEY, run INTEGER NOT NULL,
            first_segment INTEGER NOT NULL, segments INTEGER NOT NULL, frames INTEGER NOT NULL,
            overlap_frames INTEGER NOT NULL, mean_square REAL NOT NULL, bytes INTEGER NOT NULL,
            boot INTEGER NOT NULL, boottime INTEGER NOT NULL, wall INTEGER NOT NULL);
        CREATE TABLE batches(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL, stream INTEGER NOT NULL,
            first INTEGER NOT NULL, last INTEGER NOT NULL, state INTEGER NOT NULL,
            attempts INTEGER NOT NULL, clock_map INTEGER NOT NULL, sent_at INTEGER NOT NULL,
            synced INTEGER NOT NULL, app_version TEXT NOT NULL, error TEXT,
            done_boot INTEGER, done_boottime INTEGER);
        """

    /// The loss ledger; what a salvage has taken over, and whose the records were; who vouched for a wall time.
    private static let version2 = """
        CREATE TABLE losses(stream INTEGER NOT NULL, kind TEXT NOT NULL, records INTEGER NOT NULL,
            told INTEGER NOT NULL, first_boot INTEGER NOT NULL, first_boottime INTEGER NOT NULL,
            first_wall INTEGER NOT NULL, open_boot INTEGER NOT NULL, open_boottime INTEGER NOT NULL,
            open_wall INTEGER NOT NULL, last_boot INTEGER NOT NULL, last_boottime INTEGER NOT NULL,
            last_wall INTEGER NOT NULL, PRIMARY KEY(stream, kind)) WITHOUT ROWID;
        CREATE TABLE salvages(path TEXT NOT NULL, stream INTEGER NOT NULL, through INTEGER NOT NULL,
            records INTEGER NOT NULL, lost INTEGER NOT NULL, done INTEGER NOT NULL,
            PRIMARY KEY(path, stream)) WITHOUT ROWID;
        CREATE TABLE origins(stream INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            generation BLOB NOT NULL, old_first INTEGER NOT NULL,
            PRIMARY KEY(stream, first)) WITHOUT ROWID;
        ALTER TABLE clock_map ADD COLUMN source TEXT;
        """

    /// Bytes on the wire by day (days since 1970, UTC); the wall clock when a batch was over.
    private static let version3 = """
        CREATE TABLE traffic(day INTEGER PRIMARY KEY, sent INTEGER NOT NULL,
            received INTEGER NOT NULL);
        ALTER TABLE batches ADD COLUMN done_wall INTEGER;
        """

    /// Surveys that are over; the one that is going on (one row at most), and where the gateway was meanwhile.
    ///
    /// Its sightings are those of `sightings` from `first` on, which stay until it is over.
    private static let version4 = """
        INSERT INTO streams(id) VALUES (5);
        CREATE TABLE surveys(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, name TEXT NOT NULL,
            start_boot INTEGER NOT NULL, start_boottime INTEGER NOT NULL,
            start_wall INTEGER NOT NULL, report TEXT NOT NULL);
        CREATE TABLE open_survey(name TEXT NOT NULL, boot INTEGER NOT NULL,
            boottime INTEGER NOT NULL, wall INTEGER NOT NULL, first INTEGER NOT NULL,
            last INTEGER, end_boottime INTEGER, end_wall INTEGER, end_boot INTEGER);
        CREATE TABLE survey_track(boot INTEGER NOT NULL, boottime INTEGER NOT NULL,
            latitude_e7 INTEGER NOT NULL, longitude_e7 INTEGER NOT NULL,
            PRIMARY KEY(boot, boottime)) WITHOUT ROWID;
        """

    /// Numbers and what is over are told apart and stored; older databases are drained beside this one.
    ///
    /// `numbers`: the next row of tables that others refer to; such a number never comes again. `sequences`: by
    /// database (0: this one) and stream the next number and what became of those before it. `gone`: numbers that
    /// are over and in no batch. `id_seeds`: which random number ids are made of from `first` on, in the
    /// layout of this version (2) or of those before it (1), and the row that `first` had there. `runs.chunked`: the
    /// last segment that was in a chunk. `sequences.seeded`: `first` of the newest of its `id_seeds`; without that
    /// one, which damage can take away, records from there on would get ids of others. `sequences.wire`: the name on the wire that a stream of the user was
    /// declared with last. `memos`: what other parts want to know after a restart.
    private static let version5 = """
        CREATE TABLE numbers(name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO numbers VALUES
            ('segments', 1 + max(0, ifnull((SELECT max(id) FROM segments), 0),
                ifnull((SELECT max(first_segment+segments) FROM chunks), 0))),
            ('runs', 1 + max(0, ifnull((SELECT max(id) FROM runs), 0))),
            ('beacons', 1 + ifnull((SELECT max(id) FROM beacons), 0)),
            ('batches', 1 + ifnull((SELECT max(id) FROM batches), 0)),
            ('databases', 1);
        CREATE TABLE databases(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
            state INTEGER NOT NULL, is_known INTEGER NOT NULL DEFAULT 1);
        INSERT INTO databases(name, state) SELECT DISTINCT
            replace(path, rtrim(path, replace(path, '/', '')), ''), 2 FROM salvages
            WHERE stream=0 AND done=1;
        UPDATE numbers SET next=1+(SELECT ifnull(max(id), 0) FROM databases) WHERE name='databases';
        CREATE TABLE sequences(database INTEGER NOT NULL, stream INTEGER NOT NULL,
            name TEXT NOT NULL, next INTEGER NOT NULL DEFAULT 1, uploaded INTEGER NOT NULL DEFAULT 0,
            evicted INTEGER NOT NULL DEFAULT 0, not_kept INTEGER NOT NULL DEFAULT 0, wire TEXT,
            seeded INTEGER NOT NULL DEFAULT 1, PRIMARY KEY(database, stream)) WITHOUT ROWID;
        INSERT INTO sequences(database, stream, name, next, uploaded, evicted, not_kept) SELECT 0, s.id, n.name,
            1 + max(s.purged_through, n.newest,
                ifnull((SELECT max(last) FROM batches WHERE stream=s.id), 0)),
            s.uploaded, s.evicted, s.not_kept FROM streams s JOIN (
            SELECT 1 AS id, 'location' AS name,
                ifnull((SELECT max(id) FROM location), 0) AS newest
            UNION ALL SELECT 2, 'audio', ifnull((SELECT max(id) FROM chunks), 0)
            UNION ALL SELECT 3, 'beacons', ifnull((SELECT max(id) FROM sightings), 0)
            UNION ALL SELECT 4, 'events', ifnull((SELECT max(id) FROM events), 0)
            UNION ALL SELECT 5, 'surveys', ifnull((SELECT max(id) FROM surveys), 0)) n ON n.id=s.id;
        CREATE TABLE gone(database INTEGER NOT NULL, stream INTEGER NOT NULL, first INTEGER NOT NULL,
            last INTEGER NOT NULL, PRIMARY KEY(database, stream, first)) WITHOUT ROWID;
        INSERT INTO gone SELECT 0, id, 1, purged_through FROM streams WHERE purged_through>0;
        INSERT OR IGNORE INTO gone SELECT 0, b.stream, max(b.first, s.purged_through+1), b.last
            FROM batches b JOIN streams s ON s.id=b.stream
            WHERE b.state=3 AND b.last>s.purged_through;
        DELETE FROM batches WHERE state=3;
        CREATE TABLE id_seeds(stream INTEGER NOT NULL, first INTEGER NOT NULL, seed BLOB NOT NULL,
            layout INTEGER NOT NULL, old_first INTEGER NOT NULL,
            PRIMARY KEY(stream, first)) WITHOUT ROWID;
        INSERT INTO id_seeds SELECT s.id, 1, (SELECT generation FROM database), 1, 1
            FROM streams s JOIN sequences q ON q.stream=s.id WHERE q.next>1;
        INSERT OR REPLACE INTO id_seeds
            SELECT stream, last+1, (SELECT generation FROM database), 1, last+1 FROM origins;
        INSERT OR REPLACE INTO id_seeds SELECT stream, first, generation, 1, old_first FROM origins;
        DROP TABLE origins;
        DROP TABLE streams;
        ALTER TABLE batches ADD COLUMN database INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE runs ADD COLUMN chunked INTEGER NOT NULL DEFAULT 0;
        UPDATE runs SET chunked=
            ifnull((SELECT max(first_segment+segments-1) FROM chunks WHERE run=runs.id), 0);
        CREATE TABLE memos(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE INDEX batches_by_state ON
            batches(state, database, stream, done_boot, done_boottime);
        """

    /// What a segment's bytes must add up to; NULL for those recorded before.
    private static let version6 = "ALTER TABLE segments ADD COLUMN sum INTEGER;"

    /// The same for other records; NULL for those that fit into the page of their row.
    ///
    /// The tables of the user's streams get theirs by `SchemaRepair.addSums`.
    private static let version7 = """
        ALTER TABLE sightings ADD COLUMN sum INTEGER;
        ALTER TABLE events ADD COLUMN sum INTEGER;
        ALTER TABLE surveys ADD COLUMN sum INTEGER;
        """

    /// Stored bytes of what a stream has pending, NULL until the writer has added them up; uploaded batches that are
    /// to be sent again.
    private static let version8 = """
        ALTER TABLE sequences ADD COLUMN pending_bytes INTEGER;
        ALTER TABLE batches ADD COLUMN resend INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX batches_to_resend ON batches(id) WHERE resend=1;
        """
}

/// The database was written by a newer Waypost; it is left as it is.
package struct SchemaTooNew: Error, Sendable, Equatable, CustomStringConvertible {
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
