// Pruning of clock notes, which must not affect timestamps or retention.
import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
@testable import Records

extension ClockTests {
    @Test func monthsOfNotes_areAFewRows_andTheSameDates() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now)
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: true)
        Self.add(1, to: queue, clock)
        let notes = 90 * 144
        let (rows, kept) = try queue.perform { writer in
            for _ in 0..<notes {
                clock.advance(by: .seconds(600))
                try writer.recordClock(clock.stamp(), synced: true)
                try writer.pruneClockMap()
            }
            let rows = try writer.connection.integer("SELECT count(*) FROM clock_map")
            return (rows ?? 0, writer.clockMap.count)
        }
        // One every six hours while the first record of that boot exists, and the newest.
        #expect(rows <= 90 * 4 + 2)
        #expect(kept <= 90 * 4 + 2)
        Self.add(2, to: queue, clock)
        clock.stepWall(to: WallTime(milliseconds: 0))
        Self.add(3, to: queue, clock)
        let end = Self.now + .seconds(notes * 600)
        #expect(
            try Self.dates(queue) == [
                Dated(Self.now, .synced), Dated(end, .synced), Dated(end, .corrected),
            ]
        )
        // Once the old record is deleted, so are its clock notes.
        let left = try queue.perform { writer in
            try writer.connection.execute("DELETE FROM location WHERE id<=2")
            try writer.pruneClockMap()
            return try writer.connection.integer("SELECT count(*) FROM clock_map") ?? 0
        }
        #expect(left <= 3)
        #expect(try Self.dates(queue) == [Dated(end, .corrected)])
        queue.close()
    }

    @Test func unsyncedAnchors_areOneRowPerBoot_withItsUptime() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(WallTime(milliseconds: 0))
        let queue = try folder.queue(clock: clock)
        let row = try queue.perform { writer in
            for _ in 0..<1000 {
                clock.advance(by: .seconds(600))
                try writer.recordClock(clock.stamp(), synced: false)
            }
            #expect(try writer.connection.integer("SELECT count(*) FROM clock_map") == 1)
            return try writer.connection.integer("SELECT boottime FROM clock_map")
        }
        #expect(row == clock.now().milliseconds)
        queue.close()
    }

    @Test func boots_areForgotten_onceNoRecordRefersToThem() throws {
        let folder = TemporaryFolder()
        for number in 1...5 {
            let clock = Self.clock(Self.now + .seconds(number * 86_400))
            let queue = try folder.queue(bootID: "boot-\(number)", clock: clock)
            try Self.record(queue, clock.stamp(), synced: true)
            clock.advance(by: .seconds(1))
            // The second and the fourth boot collected nothing.
            if number % 2 == 1 { Self.add(number, to: queue, clock) }
            queue.close()
        }
        let clock = Self.clock(Self.now, boot: 100)
        let queue = try folder.queue(bootID: "boot-6", clock: clock)
        let before = try Self.dates(queue)
        #expect(before.map(\.quality) == [.synced, .synced, .synced])
        func boots() throws -> Int64? {
            try queue.perform { writer in
                try writer.pruneClockMap()
                return try writer.connection.integer("SELECT count(*) FROM boots")
            }
        }
        #expect(try boots() == 6)
        #expect(try Self.dates(queue) == before)
        try queue.perform { try $0.connection.execute("DELETE FROM location WHERE id=1") }
        #expect(try boots() == 4)
        #expect(try Self.dates(queue) == Array(before.dropFirst()))
        try queue.perform { try $0.connection.execute("DELETE FROM location") }
        #expect(try boots() == 1)
        queue.close()
    }

    @Test func bootsOfLosses_stay_andOthersGo() throws {
        let folder = TemporaryFolder()
        for number in 1...4 {
            let clock = Self.clock(Self.now + .seconds(number * 86_400))
            let queue = try folder.queue(bootID: "boot-\(number)", clock: clock)
            try Self.record(queue, Stamp(boot: clock.now(), wall: Self.now), synced: true)
            if number == 2 {
                let loss = Loss(
                    .overrun,
                    .beacons,
                    records: 7,
                    from: clock.stamp(),
                    to: clock.stamp()
                )
                try queue.perform { try $0.record(loss) }
            }
            queue.close()
        }
        let queue = try folder.queue(bootID: "boot-5", clock: Self.clock(Self.now))
        let boots = try queue.perform { writer in
            try writer.connection.execute("DELETE FROM events")
            try writer.pruneClockMap()
            let row = try writer.connection.prepare(
                "SELECT group_concat(boot_id) FROM (SELECT * FROM boots ORDER BY id)"
            )
            return try row.step() ? row.text(0) : ""
        }
        #expect(boots == "boot-2,boot-5")
        #expect(try queue.flushed().losses().first?.from == Self.now)
        queue.close()
    }

    @Test func frozenBatch_keepsItsDates_whateverIsRecordedLater() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(WallTime(milliseconds: 0))
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: false)
        Self.add(1, to: queue, clock)
        let unsynced = try queue.flushed().pending(.location)?.clockMap ?? -1
        let before = try Self.dates(queue, through: unsynced)
        #expect(before.map(\.quality) == [.unsynced])

        clock.stepWall(to: Self.now)
        try Self.record(queue, clock.stamp(), synced: true)
        let synced = try queue.flushed().pending(.location)?.clockMap ?? -1
        let after = try Self.dates(queue, through: synced)
        #expect(after.map(\.quality) == [.corrected])
        for day in 1...30 {
            clock.advance(by: .seconds(86_400))
            clock.stepWall(to: clock.wall() + .seconds(day))
            try Self.record(queue, clock.stamp(), synced: day % 3 == 0)
            try queue.perform { try $0.pruneClockMap() }
            #expect(try Self.dates(queue, through: unsynced) == before)
            #expect(try Self.dates(queue, through: synced) == after)
        }
        queue.close()
    }

    // MARK: Retention

    @Test(arguments: wrongTimes)
    func retention_neverLooksAtTheWallClock(text: String) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now)
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: true)
        Self.add(1, to: queue, clock)
        try queue.perform { writer in
            let range = try #require(try writer.pending(.location))
            try writer.uploaded(try #require(try writer.freeze(range, through: 1)))
        }
        func purged() throws -> Int {
            try queue.perform { try $0.purge(.location, retention: .seconds(3600)) }
        }
        clock.stepWall(to: try #require(WallTime(rfc3339: text)))
        try Self.record(queue, clock.stamp(), synced: true)
        #expect(try purged() == 0)
        clock.advance(by: .seconds(3599))
        #expect(try purged() == 0)
        clock.stepWall(to: Self.now)
        clock.advance(by: .seconds(1))
        #expect(try purged() == 1)
        queue.close()
    }

    /// A device that is switched off each night never runs as long as the retention in one boot.
    @Test func retention_countsTheBootsBetween() throws {
        let folder = TemporaryFolder()
        for boot in 1...4 {
            let clock = Self.clock(Self.now)
            let queue = try folder.queue(bootID: "boot \(boot)", clock: clock)
            try Self.record(queue, clock.stamp(), synced: true)
            if boot == 1 {
                Self.add(1, to: queue, clock)
                try queue.perform { writer in
                    let range = try #require(try writer.pending(.location))
                    try writer.uploaded(try #require(try writer.freeze(range, through: 1)))
                }
            }
            clock.advance(by: .seconds(3600))
            try Self.record(queue, clock.stamp(), synced: true)
            let purged = try queue.perform { try $0.purge(.location, retention: .seconds(14_000)) }
            #expect(purged == (boot == 4 ? 1 : 0), "\(boot)")
            queue.close()
        }
    }

    /// They are older than all uploaded records of the database that replaced it.
    @Test func retention_ignoresBootsOfQuarantinedDatabases() throws {
        let folder = TemporaryFolder()
        for boot in 1...2 {
            let clock = Self.clock(Self.now)
            let queue = try folder.queue(bootID: "before \(boot)", clock: clock)
            clock.advance(by: .seconds(30 * 86_400))
            try Self.record(queue, clock.stamp(), synced: true)
            queue.close()
        }
        var clock = Self.clock(Self.now)
        var queue = try folder.queue(bootID: "damaged", clock: clock)
        try queue.damage()
        Self.add(1, to: queue, clock)
        try queue.perform { writer in
            let range = try #require(try writer.pending(.location))
            try writer.uploaded(try #require(try writer.freeze(range, through: 1)))
        }
        queue.close()
        clock = Self.clock(Self.now)
        queue = try folder.queue(bootID: "after", clock: clock)
        func purged() throws -> Int {
            try queue.perform { try $0.purge(.location, retention: .seconds(3600)) }
        }
        #expect(try purged() == 0)
        clock.advance(by: .seconds(3600))
        #expect(try purged() == 1)
        queue.close()
    }
}
