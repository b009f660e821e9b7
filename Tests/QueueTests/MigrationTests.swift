import Foundation
import Testing

@testable import Queue
import QueueSupport
import SQLite
import Support
import Records

/// A database of this version goes to a next one, which exists here only; one of version 1 comes to this one.
@Suite struct MigrationTests {
    private static let next = Schema.Step(
        statements: """
            ALTER TABLE sightings ADD COLUMN channel INTEGER;
            CREATE TABLE channels(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            INSERT INTO channels VALUES (37, 'first');
            """,
        mark: "sightings.channel"
    )
    private static let steps = Schema.steps + [next]
    private static let newest = Schema.newest + 1

    /// A database of this version: twenty sightings, eight of them uploaded and four frozen, and audio.
    private func recorded() throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<20 { queue.accept(testSighting(number)) }
        record(queue, segments: 30)
        try queue.flushed()
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            try writer.uploaded(try #require(try writer.freeze(range, through: 8)))
            let rest = try #require(try writer.pending(.beacons))
            _ = try writer.freeze(rest, through: 12)
        }
        queue.close()
        return folder
    }

    private func migrate(_ folder: TemporaryFolder) throws {
        let database = try Connection(path: folder.database, access: .readWrite)
        try Schema.migrate(database, by: Self.steps)
    }

    private func version(_ folder: TemporaryFolder) throws -> Int64? {
        try Connection(path: folder.database, access: .readOnly).integer("PRAGMA user_version")
    }

    /// Returns what a reader finds: each sighting with its id, each segment, each batch's key.
    private func content(_ folder: TemporaryFolder) throws -> [String] {
        let reader = try Reader(path: folder.database)
        var found: [String] = []
        try reader.sightingsThere(1...20) {
            found.append("\(try reader.id(.beacons, $0.sequence)) \($0.record)")
        }
        for segment in 1...30 as ClosedRange<Int64> {
            found.append("\(try #require(try reader.segment(segment)).data.count)")
        }
        let batches = try reader.query("SELECT uuid, state FROM batches ORDER BY id")
        while try batches.step() { found.append("\(batches.text(0)) \(batches.required(1))") }
        return found
    }

    @Test func nextVersion_keepsEveryRecordAndItsID() throws {
        let folder = try recorded()
        let before = try content(folder)
        #expect(before.count == 20 + 30 + 2)
        #expect(try version(folder) == Schema.newest)
        try migrate(folder)
        #expect(try version(folder) == Self.newest)
        #expect(try content(folder) == before)
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try SchemaCheck.version(of: database, Self.steps) == Self.newest)
        #expect(try database.integer("SELECT count(*) FROM channels") == 1)
    }

    /// Batches frozen before there were columns are rows.
    @Test func firstVersion_comesToThisOne() throws {
        let folder = try recorded()
        let before = try content(folder)
        do {
            let database = try Connection(path: folder.database, access: .readWrite)
            try database.execute("ALTER TABLE batches DROP COLUMN form; PRAGMA user_version=1")
            try database.execute("DROP TABLE held; DROP TABLE asked; DROP TABLE marks")
            try database.execute("DELETE FROM numbers WHERE name='held_bytes'")
            #expect(try SchemaCheck.version(of: database) == 1)
        }
        let queue = try folder.queue()
        let frozen = try queue.perform { try $0.batches("WHERE state=0") }
        #expect(frozen.map(\.form) == [.rows] && frozen.map(\.last) == [12])
        queue.close()
        #expect(try version(folder) == Schema.newest)
        #expect(try content(folder).prefix(before.count) == before[...])
    }

    @Test func migrationThatFails_changesNothing() throws {
        let folder = try recorded()
        let before = try content(folder)
        do {
            let database = try Connection(path: folder.database, access: .readWrite)
            // The step is about to create this table: its second statement fails.
            try database.execute("CREATE TABLE channels(id INTEGER PRIMARY KEY)")
        }
        #expect(throws: SQLiteError.self) { try migrate(folder) }
        #expect(try version(folder) == Schema.newest)
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(
            try database.integer(
                "SELECT count(*) FROM pragma_table_info('sightings') WHERE name='channel'"
            ) == 0
        )
        #expect(try content(folder) == before)
    }

    /// A crash between two steps leaves the database at the version that the first of them made.
    @Test(arguments: 0...3)
    func interruptedMigration_isDoneAtTheNextStart(after version: Int) throws {
        let folder = TemporaryFolder()
        let database = try Connection(path: folder.database, access: .readWrite)
        try Schema.migrate(database, by: Array(Self.steps.prefix(version)))
        #expect(try SchemaCheck.version(of: database, Self.steps) == Int64(version))
        try Schema.migrate(database, by: Self.steps)
        #expect(try SchemaCheck.version(of: database, Self.steps) == Self.newest)
        #expect(try database.integer("PRAGMA user_version") == Self.newest)
    }

    /// An older program is installed again: it leaves the database as it is.
    @Test func nextVersion_isRefusedByThisOne_andLeftAlone() throws {
        let folder = try recorded()
        try migrate(folder)
        let before = try content(folder)
        let refusal = SchemaTooNewError(version: Self.newest, newest: Schema.newest)
        #expect(throws: refusal) { try folder.queue() }
        // `doctor` says what a start does.
        let probe = DatabaseProbe(folder.database, limit: .seconds(3))
        #expect(probe == .tooNew("\(refusal)"))
        #expect(try version(folder) == Self.newest)
        #expect(try content(folder) == before)
        #expect(try !folder.files.contains { $0.contains(".corrupt-") })
    }

    /// A start quarantines it, although SQLite finds each page intact.
    @Test func tableWithoutAColumn_isDamageToTheProbe_too() throws {
        let folder = try recorded()
        #expect(DatabaseProbe(folder.database, limit: .seconds(3)) == .sound)
        try Connection(path: folder.database, access: .readWrite)
            .execute("ALTER TABLE traffic DROP COLUMN received")
        guard case .damaged(let message) = DatabaseProbe(folder.database, limit: .seconds(3)) else {
            Issue.record("a table without a column is not noticed")
            return
        }
        #expect(message.contains("traffic"))
    }

    /// A database without tables, as a crash before the first step leaves it, becomes one of this version.
    @Test func emptyDatabase_isFilled() throws {
        let folder = TemporaryFolder()
        do {
            let database = try Connection(path: folder.database, access: .readWrite)
            try database.execute("PRAGMA auto_vacuum=INCREMENTAL")
        }
        let queue = try folder.queue()
        queue.accept(testSighting(1))
        #expect(try queue.flushed().pending(.beacons)?.last == 1)
        #expect(try version(folder) == Schema.newest)
        queue.close()
    }

    /// apt goes back to an older package only if its program can read the database (deploy/debian/waypost.preinst).
    @Test func theSchemasVersion_isThePackages() throws {
        let control = try String(
            contentsOfFile: Tree.path("deploy/debian/control"),
            encoding: .utf8
        )
        #expect(control.contains("\nXB-Waypost-Data: \(Schema.newest)\n"))
    }
}
