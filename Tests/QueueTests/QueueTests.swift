import CSQLite
import Foundation
import Host
@testable import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

@Suite struct QueueTests {
    @Test func records_comeBackAsTheyWereAccepted() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        var fix = Fix(
            stamp: testStart,
            mode: .threeDimensional,
            latitude: 46.4603123,
            longitude: -6.843
        )
        fix.altitude = 377.4
        fix.speed = 1.41
        fix.satellites = 9
        queue.accept(fix)
        var telemetry = Telemetry()
        telemetry.add(.temperature, -0.05)
        telemetry.add(.battery, scaled: 2977)
        var heard = testSighting(1)
        heard.telemetry = telemetry
        queue.accept(heard)
        var sealed = testSighting(2)
        sealed.identity.kind = .bthome
        sealed.data = [0xD2, 0xFC, 0x41, 0]
        queue.accept(sealed)
        var unknown = testSighting(3)
        unknown.identity.kind = .manufacturer
        unknown.identity.beaconID = ""
        unknown.data = [0, 1]
        queue.accept(unknown)
        queue.accept(
            Event(.gap, source: "audio", detail: [("lost_s", .number(1.5))], stamp: testStart)
        )
        queue.close()

        let reader = try folder.queue().reader()
        var fixes: [[Int64?]] = []
        let decimals = [7, 7, 1, 2, 1, 1, 1, 0, 0, 0]
        try reader.there(.location, 1...10) { stored in
            #expect(stored.record.stamp == fix.stamp)
            fixes.append(zip(stored.record.values, decimals).map { $0.scaled($1) })
        }
        #expect(fixes == [zip(fix.values, decimals).map { $0.scaled($1) }])
        var sightings: [Sighting] = []
        try reader.sightingsThere(1...10) { sightings.append($0.record) }
        #expect(sightings == [heard, sealed, unknown])
        var details: [String] = []
        try reader.events(1...10) { _, kind, source, detail in
            details.append("\(kind) \(source) \(detail)")
        }
        #expect(details == [#"gap audio {"lost_s":1.5}"#])
    }

    @Test func commit_comesByItselfAfterTheInterval() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(commitInterval: .milliseconds(20))
        queue.accept(testSighting(1))
        let reader = try queue.reader()
        try waitUntil("the sighting is committed") {
            var count = 0
            try reader.sightingsThere(1...1) { _ in count += 1 }
            return count == 1
        }
        queue.close()
    }

    @Test func frozenBatch_isTheSameAfterAReopen() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        for number in 0..<100 { queue.accept(testSighting(number)) }
        let frozen = try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            #expect(range.first == 1)
            #expect(range.last == 100)
            return try #require(try writer.freeze(range, through: 60))
        }
        queue.close()
        queue = try folder.queue()
        let again = try queue.nextReady(.beacons)
        #expect(again == frozen)
        let rest = try queue.flushed().pending(.beacons)
        #expect(rest?.first == 61)
        queue.close()
    }

    @Test func statistics_addUpThroughEveryTransition() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<100 { queue.accept(testSighting(number)) }
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            let batch = try #require(try writer.freeze(range, through: 64))
            try writer.refused(batch, message: "record 3 is bad")
            try writer.split(batch)
            let half = try #require(try writer.nextReady(.beacons))
            #expect(half.first == 1)
            #expect(half.last == 32)
            #expect(half.key != batch.key)
            try writer.uploaded(half)
            try writer.quarantine(try #require(try writer.nextReady(.beacons)), message: "bad")
        }
        let figures = try queue.flushed().statistics().first { $0.stream == .beacons }
        #expect(figures?.accepted == 100)
        #expect(figures?.uploaded == 32)
        #expect(figures?.quarantined == 32)
        #expect(figures?.pending == 36)
        queue.close()
        let reopened = try folder.queue()
        #expect(
            try reopened.flushed().statistics().first { $0.stream == .beacons }
                == figures
        )
        reopened.close()
    }

    @Test func purge_deletesOldUploads_andNeverReusesNumbers() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            try writer.uploaded(try #require(try writer.freeze(range, through: 10)))
        }
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 0)
        // A wall clock that jumps ten years must not delete anything.
        clock.stepWall(to: testStart.wall + .seconds(10 * 365 * 86_400))
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 0)
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 10)
        queue.close()
        let reopened = try folder.queue(clock: clock)
        reopened.accept(testSighting(1))
        #expect(try reopened.flushed().pending(.beacons)?.first == 11)
        reopened.close()
    }

    @Test func clock_syncDatesWhatWasCapturedBeforeIt() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let wrong = Stamp(boot: testStart.boot, wall: WallTime(milliseconds: 1000))
        queue.accept(Fix(stamp: wrong, mode: .twoDimensional, latitude: 1, longitude: 2))
        let range = try queue.perform { writer in
            try writer.recordClock(
                Stamp(
                    boot: testStart.boot + .seconds(60),
                    wall: WallTime(milliseconds: 1_795_235_467_000)
                ),
                synced: true
            )
            return try #require(try writer.pending(.location))
        }
        #expect(range.synced)
        let reader = try queue.reader()
        let map = try reader.dates(through: range.clockMap)
        try reader.there(.location, 1...1) { stored in
            let (wall, quality) = map.resolve(stored.record.stamp, boot: stored.boot)
            #expect(quality == .corrected)
            #expect(wall == testStart.wall)
        }
        let before = try reader.dates(through: range.clockMap - 1)
        try reader.there(.location, 1...1) { stored in
            #expect(before.resolve(stored.record.stamp, boot: stored.boot).quality == .unsynced)
        }
        queue.close()
    }

    @Test func identities_takeARowEach_howeverManySightings() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<5000 { queue.accept(testSighting(number)) }
        let rows = try queue.perform { _ in 0 }
        #expect(rows == 0)
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM beacons") == 10)
        #expect(try database.integer("SELECT count(*) FROM sightings") == 5000)
    }

    /// A crowd with changing addresses: unreferenced rows of beacons are deleted, a part of the
    /// table at a time.
    @Test func identitiesWithoutASighting_goWithTheSightings() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        let count = 20_000
        for number in 0..<count {
            var sighting = testSighting(1)
            sighting.identity.beaconID = "crowd/\(number)"
            if number % 1000 == 0 { _ = try queue.flushed() }
            queue.accept(sighting)
        }
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            let last = Int64(count) - 10
            try writer.uploaded(try #require(try writer.freeze(range, through: last)))
        }
        clock.advance(by: .seconds(61))
        let purged = try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) }
        #expect(purged == count - 10)
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM sightings") == 10)
        // Cached rows stay; half of a lookup's batch may stay too.
        let rows = try #require(try database.integer("SELECT count(*) FROM beacons"))
        #expect(rows <= 2 * Int64(IdentityCache.limit))
        let lost = "SELECT count(*) FROM sightings WHERE beacon NOT IN (SELECT id FROM beacons)"
        #expect(try database.integer(lost) == 0)
    }

    /// A refused record may wait a year for a person: later, unreferenced beacons are still
    /// deleted.
    @Test func identitiesOfACrowd_goBehindASightingInQuarantine() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        func hear(_ id: String) {
            var sighting = testSighting(1)
            sighting.identity.beaconID = id
            queue.accept(sighting)
        }
        hear("refused/1")
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            let batch = try #require(try writer.freeze(range, through: range.last))
            try writer.quarantine(batch, message: "bad")
        }
        let count = 20_000
        for number in 0..<count {
            if number % 1000 == 0 { _ = try queue.flushed() }
            hear("crowd/\(number)")
            // Another one is refused in between.
            if number == 10_000 { hear("refused/2") }
        }
        try queue.perform { writer in
            for last in [10_002, 10_003, Int64(count) + 2] {
                let range = try #require(try writer.pending(.beacons))
                let batch = try #require(try writer.freeze(range, through: last))
                if batch.records == 1 {
                    try writer.quarantine(batch, message: "bad")
                } else {
                    try writer.uploaded(batch)
                }
            }
        }
        clock.advance(by: .seconds(61))
        let purged = try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) }
        #expect(purged == count)
        var names: [String] = []
        try queue.reader().sightingsThere(1...(Int64(count) + 2)) {
            names.append($0.record.identity.beaconID)
        }
        #expect(names == ["refused/1", "refused/2"])
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        let rows = try #require(try database.integer("SELECT count(*) FROM beacons"))
        #expect(rows <= 2 * Int64(IdentityCache.limit))
    }

    /// A rollback leaves the earlier rows, which are unused now.
    @Test func identitiesBeforeARollback_areDeletedWithSightings() throws {
        struct Undone: Error {}
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        for round in 0..<50 {
            for number in 0..<10 { queue.accept(testSighting(round * 10 + number)) }
            _ = try queue.flushed()
            try? queue.perform { _ in throw Undone() }
        }
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            try writer.uploaded(try #require(try writer.freeze(range, through: range.last)))
        }
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 500)
        queue.accept(testSighting(500))
        queue.accept(testSighting(501))
        var heard: [String] = []
        try queue.flushed().reader().sightingsThere(1...502) {
            heard.append($0.record.identity.beaconID)
        }
        #expect(heard == ["f7826da6/1/0", "f7826da6/1/1"])
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try #require(try database.integer("SELECT count(*) FROM beacons")) <= 12)
    }

    @Test(arguments: [Schema.newest + 1, 8, 99])
    func newerSchema_isRefusedAndLeftAlone(_ version: Int64) throws {
        let folder = TemporaryFolder()
        try folder.queue().close()
        try Connection(path: folder.database, access: .readWrite)
            .execute("PRAGMA user_version=\(version); ALTER TABLE boots ADD COLUMN more TEXT")
        #expect(throws: SchemaTooNewError(version: version, newest: Schema.newest)) {
            try folder.queue()
        }
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("PRAGMA user_version") == version)
    }

    @Test(arguments: [0, 1, 7] as [Int64])
    func databaseOfAnotherProgram_isRefusedAndLeftAlone(_ version: Int64) throws {
        let folder = TemporaryFolder()
        try Connection(path: folder.database, access: .readWrite)
            .execute("CREATE TABLE notes(text TEXT); PRAGMA user_version=\(version)")
        let file = URL(fileURLWithPath: folder.database)
        let before = try Data(contentsOf: file)
        let refusal = ForeignDatabaseError(table: "notes")
        #expect(throws: refusal) { try folder.queue() }
        // `doctor` says what a start does.
        let probe = DatabaseProbe(folder.database, limit: .seconds(3))
        #expect(probe == .foreign("\(refusal)"))
        #expect(try Data(contentsOf: file) == before)
        #expect(try folder.files == [file.lastPathComponent])
    }
}
