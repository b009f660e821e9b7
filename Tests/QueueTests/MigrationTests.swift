import Foundation
import Host
import Testing

@testable import Queue
import SQLite
import Support
@testable import Records

/// Databases of each earlier version, as that version wrote them, migrate to the newest with all
/// they hold.
///
/// The fixtures are recorded: five fixes, twenty sightings (eight uploaded, four frozen), two
/// chunks and two events by the version that had the schema, cut to two chunks; the batches were
/// added. The fifth to the seventh are the fourth as those versions migrated it.
@Suite struct MigrationTests {
    private static let folder = Tree.root.appendingPathComponent("Tests/Fixtures/store")

    /// Copies the database of a version into a folder of the test.
    private func recorded(_ version: Int64) throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        try FileManager.default.copyItem(
            at: Self.folder.appendingPathComponent("version\(version).sqlite"),
            to: URL(fileURLWithPath: folder.database)
        )
        return folder
    }

    @Test(arguments: 1..<Schema.newest)
    func earlierVersion_keepsEveryRecordAndItsID(_ version: Int64) throws {
        let folder = try recorded(version)
        let old = try Connection(path: folder.database, access: .readOnly)
        #expect(try old.integer("PRAGMA user_version") == version)
        let queue = try folder.queue()
        #expect(queue.setAside.isEmpty)
        let pending = try queue.flushed().statistics().map { [$0.accepted, $0.pending] }
        #expect(pending == [[2, 2], [0, 0], [5, 5], [20, 12], [2, 2]])
        // Compares with the sums of pending rows, which earlier versions did not store.
        try checkSum(queue)

        let frozen = try #require(try queue.nextReady(.beacons))
        #expect(frozen.key == "22222222-2222-4222-8222-222222222222")
        #expect(frozen.first == 9)
        #expect(frozen.last == 12)
        #expect(frozen.attempts == 1)

        let reader = try queue.reader()
        var ids: [String] = []
        try reader.there(.location, 1...9) { ids.append(try reader.id(.location, $0.sequence)) }
        #expect(ids.first == "00010203-0405-8607-8809-010000000001")
        #expect(ids.count == 5)
        var sound = 0
        try reader.chunksThere(1...9) { stored in
            let first = stored.record.firstSegment
            for index in 0..<Int64(stored.record.segments) {
                sound += try reader.segment(first + index) == nil ? 0 : 1
            }
        }
        #expect(sound == 30)
        queue.accept(testSighting(1))
        #expect(try queue.flushed().pending(.beacons)?.last == 21)
        queue.close()
    }

    @Test func migrationThatFails_changesNothing() throws {
        let folder = try recorded(1)
        do {
            let database = try Connection(path: folder.database, access: .readWrite)
            // A table of the step already exists: its last statement but one fails.
            try database.execute("CREATE TABLE origins(name TEXT)")
        }
        #expect(throws: SQLiteError.self) { _ = try Schema.open(path: folder.database) }
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("PRAGMA user_version") == 1)
        #expect(
            try database.integer("SELECT count(*) FROM sqlite_schema WHERE name='losses'") == 0
        )
        #expect(try database.integer("SELECT count(*) FROM sightings") == 20)
    }

    @Test func interruptedMigration_isDoneAtTheNextStart() throws {
        // A new database stops at each version in turn, as after a crash between two steps.
        for version in 0..<Schema.newest {
            let folder = TemporaryFolder()
            do {
                let database = try Connection(path: folder.database, access: .readWrite)
                try database.execute("PRAGMA auto_vacuum=INCREMENTAL")
                for step in 0..<Int(version) { try database.execute(Schema.steps[step]) }
                try database.execute("PRAGMA user_version=\(version)")
                #expect(try SchemaCheck.version(of: database) == version)
            }
            let queue = try folder.queue()
            queue.accept(testSighting(1))
            #expect(try queue.flushed().pending(.beacons)?.last == 1)
            queue.close()
        }
    }
}
