import Foundation
import Host
@testable import Queue
import QueueSupport
import SQLite
import Support
@testable import Records
import Testing

/// Damage in the tables beside the records: declarations, loss counters, random numbers of ids,
/// boots.
@Suite struct DamagedBooksTests {
    /// Returns the ids of all pending sightings in upload order.
    private func ids(_ queue: Queue) throws -> [String] {
        var found: [String] = []
        while let range = queue.pending(.beacons) {
            let reader = try queue.reader(of: range.database)
            let ids = try reader.ids(.beacons, range.first...range.last)
            found += try (range.first...range.last).map { try ids.id($0) }
            try queue.perform { writer in
                let batch = try #require(try writer.freeze(range, through: range.last))
                try writer.uploaded(batch)
            }
        }
        return found
    }

    /// SQLite's check does not detect a renamed column, and every insert that names it fails.
    @Test func damagedDeclaration_isSetAside() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<20 { queue.accept(testSighting(number)) }
        queue.close()
        var data = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        let place = try #require(data.range(of: Data("attempts INTEGER".utf8)))
        data[place.lowerBound] = UInt8(ascii: "b")
        try data.write(to: URL(fileURLWithPath: folder.database))

        let again = try folder.queue()
        #expect(again.setAside.count == 1)
        try again.waitUntilSalvaged()
        #expect(try ids(again).count == 20)
        again.close()
    }

    /// Not damage: `status` says that its tables are of another version.
    @Test func schemaThatLacksAColumn_isOfAnotherVersion() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<20 { queue.accept(testSighting(number)) }
        queue.close()
        try Connection(path: folder.database, access: .readWrite)
            .execute("ALTER TABLE sequences DROP COLUMN pending_bytes")
        for _ in 0..<2 {
            let again = try folder.queue()
            #expect(again.setAside.map(\.hasOtherTables) == [true])
            try again.waitUntilSalvaged()
            #expect(again.statistics().first { $0.stream == .beacons }?.pending == 20)
            again.close()
        }
        let damaged = try folder.queue()
        try damaged.damage()
        #expect(damaged.setAside.map(\.hasOtherTables) == [true, false])
        damaged.close()
    }

    /// The WAL of a deleted database, under the name that the next one would use.
    @Test func journalThatIsLeft_isNotTakenForTheNextDatabases() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let name = "\(folder.database).corrupt-20261121T043007Z"
        let queue = try folder.queue(clock: clock)
        for number in 0..<20 { queue.accept(testSighting(number)) }
        try queue.flushed()
        try Data("left".utf8).write(to: URL(fileURLWithPath: name + "-wal"))
        try queue.damage()
        #expect(queue.setAside.map(\.path) == [name + "-2"])
        #expect(try ids(queue).count == 20)
        queue.close()
    }

    /// SQLite's check does not detect an index that disagrees with its table either: here it is one
    /// step behind.
    @Test(arguments: [false, true]) func indexOfBatches_thatIsOlder_isMadeAnew(isUploaded: Bool)
        throws
    {
        let folder = TemporaryFolder()
        let url = URL(fileURLWithPath: folder.database)
        var queue = try folder.queue()
        for number in 0..<20 { queue.accept(testSighting(number)) }
        try queue.flushed()
        if isUploaded { try freeze(queue) }
        queue.close()
        let before = try Data(contentsOf: url)

        queue = try folder.queue()
        if isUploaded {
            let batch = try #require(try queue.nextReady(.beacons))
            try queue.perform { _ = try $0.uploaded(batch) }
        } else {
            try freeze(queue)
        }
        queue.close()
        let root = try Connection(path: folder.database, access: .readOnly).integer(
            "SELECT rootpage FROM sqlite_schema WHERE name='batches_by_state'"
        )
        let page = Int(try #require(root) - 1) * 1024
        var data = try Data(contentsOf: url)
        data.replaceSubrange(page..<(page + 1024), with: before[page..<(page + 1024)])
        try data.write(to: url)

        queue = try folder.queue()
        #expect(queue.setAside.isEmpty)
        #expect(try queue.nextReady(.beacons) == nil ? isUploaded : !isUploaded)
        let figures = try queue.flushed().statistics().first { $0.stream == .beacons }
        #expect(figures?.pending == (isUploaded ? 0 : 20))
        queue.close()
    }

    private func freeze(_ queue: Queue) throws {
        let range = try #require(queue.pending(.beacons))
        try queue.perform { _ = try $0.freeze(range, through: range.last) }
    }

    @Test func ledgerAndTraffic_ofADatabaseThatIsSetAside_goOn() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let before = Loss(.missed, .beacons, records: 7, from: testStart, to: testStart)
        queue.record(before)
        try queue.perform { try $0.record(Traffic(sent: 100, received: 10)) }
        try queue.damage()
        queue.record(before)
        try queue.flushed()
        try queue.perform { try $0.record(Traffic(sent: 1, received: 0)) }
        #expect(try queue.losses().map(\.records) == [14])
        #expect(try queue.traffic().map(\.traffic) == [Traffic(sent: 101, received: 10)])
        try queue.damage()
        #expect(try queue.losses().map(\.records) == [14])
        queue.close()
    }

    /// The newest random number is missing: its records would get the ids of others.
    @Test func recordsWithoutRandomNumber_areLost_notSentAsOthers() throws {
        let folder = TemporaryFolder()
        for start in 0..<2 {
            let queue = try folder.queue()
            for number in 0..<10 { queue.accept(testSighting(10 * start + number)) }
            queue.close()
        }
        let queue = try folder.queue()
        let known = try queue.reader().ids(.beacons, 1...20)
        let first = try (1...10).map { try known.id($0) }
        let other = try Connection(path: folder.database, access: .readWrite)
        try other.execute("DELETE FROM id_seeds WHERE stream=3 AND first=11")
        try queue.damage()
        #expect(try ids(queue) == first)
        let lost = try queue.losses().filter { $0.stream == .beacons }
        #expect(lost.map(\.records) == [10])
        queue.close()
    }

    /// A half-written page holds a boot twice: its clock would date records of the other boot.
    @Test func bootThatIsThereTwice_datesNothing() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(bootID: "first")
        try queue.perform { try $0.recordClock(testStart, synced: true) }
        queue.close()
        let other = try Connection(path: folder.database, access: .readWrite)
        try other.execute(
            """
            PRAGMA writable_schema=ON;
            CREATE TABLE twice(id INTEGER, boot_id TEXT);
            INSERT INTO twice VALUES (1, 'first'), (1, 'second');
            UPDATE sqlite_schema SET rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='twice'),
                sql='CREATE TABLE boots(id INTEGER, boot_id TEXT)' WHERE name='boots';
            DELETE FROM sqlite_schema WHERE tbl_name='boots' AND type='index';
            """
        )
        let settings = QueueSettings(at: folder.database, bootID: "now")
        let reader = try Reader(settings, damaged: folder.database, .waits)
        #expect(try reader.boots().isEmpty)
    }

    /// The power failed after the database was renamed and before its WAL was.
    @Test func journalThatStayedBehind_followsItsDatabase() throws {
        let (folder, later) = (TemporaryFolder(), TemporaryFolder())
        let queue = try folder.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.flushed()
        let aside = "/queue.sqlite.corrupt-20261122T000000Z"
        try FileManager.default.copyItem(atPath: folder.database, toPath: later.path + aside)
        try FileManager.default.copyItem(
            atPath: folder.database + "-wal",
            toPath: later.database + "-wal"
        )
        let again = try later.queue()
        try again.waitUntilSalvaged()
        #expect(try ids(again).count == 10)
        #expect(FileManager.default.fileExists(atPath: later.path + aside + "-wal"))
        again.close()
        queue.close()
    }

    /// The power failed while the mark of a damaged database was being written.
    @Test func markThatWasNotWrittenWhole_isDeleted() throws {
        let folder = TemporaryFolder()
        let mark = folder.database + ".corrupt-20261122T000000Z" + CommitMark.suffix
        let names = [mark, mark + ".12-1.new"]
        for name in names { try Data("part".utf8).write(to: URL(fileURLWithPath: name)) }
        let queue = try folder.queue()
        defer { queue.close() }
        #expect(!names.contains { FileManager.default.fileExists(atPath: $0) })
        #expect(queue.setAside.isEmpty)
    }

    /// Such a number would index beyond every table in memory.
    @Test(arguments: [-3, 20, 5000])
    func invalidStreamNumber_isDamage_andBlocksNothing(number: Int) throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        queue.close()
        let other = try Connection(path: folder.database, access: .readWrite)
        try other.execute(
            """
            INSERT INTO sequences(database, stream, name) VALUES (0, \(number), 'x'), (7, \(number), 'x')
            """
        )
        let again = try folder.queue()
        #expect(again.setAside.count == 1)
        try again.waitUntilSalvaged()
        #expect(try ids(again).count == 10)
        again.close()
    }
}
