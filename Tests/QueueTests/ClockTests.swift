// Timestamps are right whatever the wall clock did: a real queue on a real file, and a clock set by
// the test.
import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
@testable import Records

@Suite struct ClockTests {
    static let now = WallTime(milliseconds: 1_795_235_407_000)
    /// The start times of boards without an RTC.
    static let wrongTimes = [
        "1970-01-01T00:00:05Z", "2019-02-14T10:11:59Z", "2038-01-19T03:14:07Z",
        "2106-02-07T06:28:16Z",
    ]

    static func clock(_ wall: WallTime, boot seconds: Int64 = 20) -> ManualClock {
        ManualClock(
            Stamp(boot: BootInstant(nanoseconds: seconds * 1_000_000_000), wall: wall)
        )
    }

    /// Adds a record whose position is its number, so that its order can be checked.
    static func add(_ number: Int, to queue: Queue, _ clock: ManualClock) {
        queue.accept(
            Fix(
                stamp: clock.stamp(),
                mode: .threeDimensional,
                latitude: 0,
                longitude: Double(number) / 1e7
            )
        )
    }

    struct Dated: Equatable {
        var wall: WallTime
        var quality: ClockQuality

        init(_ wall: WallTime, _ quality: ClockQuality) {
            self.wall = wall
            self.quality = quality
        }
    }

    /// Returns every fix in sequence order, dated with the clock map up to an entry (nil: all of
    /// it).
    static func dates(_ queue: Queue, through last: Int64? = nil) throws -> [Dated] {
        let pending = try queue.perform { writer in
            try writer.commit()
            return writer.clockMap.newest
        }
        let reader = try queue.reader()
        let map = try reader.dates(through: last ?? pending)
        var dates: [Dated] = []
        var places: [Int64] = []
        try reader.there(.location, 1...1_000_000) { stored in
            let (wall, quality) = map.resolve(stored.record.stamp, boot: stored.boot)
            dates.append(Dated(wall, quality))
            places.append(stored.record.values[1].scaled(7) ?? 0)
        }
        #expect(places == places.sorted())
        return dates
    }

    static func record(
        _ queue: Queue,
        _ stamp: Stamp,
        synced: Bool,
        by source: ClockSource = .kernel
    ) throws {
        try queue.perform { try $0.recordClock(stamp, synced: synced, by: source) }
    }

    // MARK: Boots with a wrong clock

    @Test(arguments: wrongTimes)
    func bootWithAWrongClock_isDatedFromItsFirstSync(text: String) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(try #require(WallTime(rfc3339: text)))
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: false)
        Self.add(1, to: queue, clock)
        clock.advance(by: .seconds(3600))
        Self.add(2, to: queue, clock)
        #expect(try Self.dates(queue).map(\.quality) == [.unsynced, .unsynced])
        #expect(try Self.dates(queue).first?.wall == WallTime(rfc3339: text))

        clock.stepWall(to: Self.now)
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(10))
        Self.add(3, to: queue, clock)
        let expected = [
            Dated(Self.now + .seconds(-3600), .corrected), Dated(Self.now, .corrected),
            Dated(Self.now + .seconds(10), .synced),
        ]
        // The second was stamped at the instant of the sync, with the old clock.
        #expect(try Self.dates(queue) == expected)
        queue.close()

        let reopened = try folder.queue(clock: clock)
        #expect(try Self.dates(reopened) == expected)
        #expect(try reopened.perform { $0.clockSyncedThisBoot() })
        reopened.close()
    }

    @Test(arguments: wrongTimes)
    func gpsdSyncedBoot_isDatedRight_ifSystemClockIsWrong(text: String) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(try #require(WallTime(rfc3339: text)))
        let queue = try folder.queue(clock: clock)
        Self.add(1, to: queue, clock)
        clock.advance(by: .seconds(60))
        let evidence = Stamp(boot: clock.now(), wall: Self.now)
        try Self.record(queue, evidence, synced: true, by: .gpsd)
        Self.add(2, to: queue, clock)
        clock.advance(by: .seconds(86_400))
        Self.add(3, to: queue, clock)
        #expect(
            try Self.dates(queue) == [
                Dated(Self.now + .seconds(-60), .corrected), Dated(Self.now, .corrected),
                Dated(Self.now + .seconds(86_400), .corrected),
            ]
        )
        #expect(
            try queue.perform { $0.clockAnchor() }
                == ClockMap.Anchor(
                    boottime: evidence.boot.milliseconds,
                    wall: evidence.wall.milliseconds,
                    source: .gpsd
                )
        )
        queue.close()
    }

    @Test func unsyncedBoot_keepsItsTimes_andUsesNoOthers() throws {
        let folder = TemporaryFolder()
        let first = Self.clock(WallTime(milliseconds: 0))
        var queue = try folder.queue(bootID: "first", clock: first)
        try Self.record(queue, first.stamp(), synced: false)
        Self.add(1, to: queue, first)
        queue.close()
        let second = Self.clock(Self.now)
        queue = try folder.queue(bootID: "second", clock: second)
        try Self.record(queue, second.stamp(), synced: true)
        second.advance(by: .seconds(1))
        Self.add(2, to: queue, second)
        #expect(
            try Self.dates(queue) == [
                Dated(WallTime(milliseconds: 0), .unsynced),
                Dated(Self.now + .seconds(1), .synced),
            ]
        )
        #expect(try queue.perform { $0.clockSyncedThisBoot() })
        queue.close()
        // Booting the first clock again would not be another boot: it keeps its state.
        queue = try folder.queue(bootID: "third", clock: first)
        #expect(try !queue.perform { $0.clockSyncedThisBoot() })
        queue.close()
    }

    // MARK: Steps

    @Test(arguments: [-10, -1, 1, 10])
    func clockSteppedByYearsWhileCollecting_changesNoDate(years: Int) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now)
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: true)
        Self.add(1, to: queue, clock)
        clock.advance(by: .seconds(60))
        clock.stepWall(to: clock.wall() + .seconds(years * 365 * 86_400))
        // Set by hand: the kernel no longer reports it as synchronised.
        try Self.record(queue, clock.stamp(), synced: false)
        Self.add(2, to: queue, clock)
        clock.advance(by: .seconds(3600))
        Self.add(3, to: queue, clock)
        // An NTP client corrects it.
        clock.stepWall(to: Self.now + .seconds(3660))
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(1))
        Self.add(4, to: queue, clock)
        #expect(
            try Self.dates(queue) == [
                Dated(Self.now, .synced), Dated(Self.now + .seconds(60), .corrected),
                Dated(Self.now + .seconds(3660), .corrected),
                Dated(Self.now + .seconds(3661), .synced),
            ]
        )
        queue.close()
    }

    @Test func stepOfASyncedClock_holdsFromItsOwnAnchorOn() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now)
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(60))
        Self.add(1, to: queue, clock)
        // The network is back after two days and shows that the clock was half a minute slow.
        clock.advance(by: .seconds(2 * 86_400))
        clock.stepWall(to: clock.wall() + .seconds(30))
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(60))
        Self.add(2, to: queue, clock)
        #expect(
            try Self.dates(queue) == [
                Dated(Self.now + .seconds(60), .synced),
                Dated(Self.now + .seconds(2 * 86_400 + 150), .synced),
            ]
        )
        queue.close()
    }

    // MARK: A wrong first clock note

    /// A router gives a time before it has one: the records of the first minutes are pending when
    /// it is corrected.
    @Test(arguments: [-86_400 * 7, -30, 30, 86_400 * 400], [ClockSource.kernel, .gpsd])
    func wrongFirstWord_isPutRight_forAllThatWaits(error: Int, by first: ClockSource) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(WallTime(milliseconds: 5000))
        let queue = try folder.queue(clock: clock)
        Self.add(1, to: queue, clock)
        clock.advance(by: .seconds(60))
        let wrong = Stamp(boot: clock.now(), wall: Self.now + .seconds(60 + error))
        // A GNSS receiver does not set the clock.
        if first == .kernel { clock.stepWall(to: wrong.wall) }
        try Self.record(queue, wrong, synced: true, by: first)
        clock.advance(by: .seconds(300))
        Self.add(2, to: queue, clock)
        let before = try queue.flushed().pending(.location)?.clockMap ?? -1
        let frozen = try Self.dates(queue, through: before)
        #expect(frozen[1].wall == Self.now + .seconds(360 + error))
        clock.stepWall(to: Self.now + .seconds(360))
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(1))
        Self.add(3, to: queue, clock)
        let right = [
            Dated(Self.now, .corrected), Dated(Self.now + .seconds(360), .corrected),
            Dated(Self.now + .seconds(361), .synced),
        ]
        #expect(try Self.dates(queue) == right)
        // A batch that a server may have keeps its timestamps.
        #expect(try Self.dates(queue, through: before).prefix(2) == frozen[...])
        queue.close()
        let reopened = try folder.queue(clock: clock)
        #expect(try Self.dates(reopened) == right)
        reopened.close()
    }

    /// The router was right for a day, was restarted, and gives its firmware's date for two
    /// minutes.
    @Test func dayOldTime_isKept_andALaterWrongOneIsCorrected() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now)
        let queue = try folder.queue(clock: clock)
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(86_400))
        Self.add(1, to: queue, clock)
        clock.advance(by: .seconds(1))
        clock.stepWall(to: Self.now + .seconds(-3600))
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(60))
        Self.add(2, to: queue, clock)
        #expect(try Self.dates(queue).first == Dated(Self.now + .seconds(86_400), .synced))
        clock.advance(by: .seconds(60))
        clock.stepWall(to: Self.now + .seconds(86_521))
        try Self.record(queue, clock.stamp(), synced: true)
        #expect(
            try Self.dates(queue) == [
                Dated(Self.now + .seconds(86_400), .synced),
                Dated(Self.now + .seconds(86_461), .corrected),
            ]
        )
        queue.close()
    }

    /// A quarantined database yields its entries after those of the database that replaced it.
    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]])
    func wordsThatComeInAnyOrder_dateAlike(order: [Int]) {
        // Wrong, wrong differently, and right: all within an hour.
        let words: [(boottime: Int64, wall: Int64)] = [
            (600_000, 50_000_000), (1_200_000, 90_600_000), (1_800_000, 1_800_000),
        ]
        var map = ClockMap()
        for (id, place) in order.enumerated() {
            let word = words[place]
            map.add(Self.entry(Int64(id + 1), boottime: word.boottime, wall: word.wall))
        }
        for minute in [1, 10, 15, 20, 25, 30, 40] as [Int64] {
            let boot = BootInstant(nanoseconds: minute * 60_000_000_000)
            let stamp = Stamp(boot: boot, wall: WallTime(milliseconds: 0))
            #expect(map.resolve(stamp, boot: 1).wall.milliseconds == minute * 60_000)
        }
    }

    /// A GNSS receiver that learns leap seconds steps back; a board that slept with its clocks
    /// stopped steps forward.
    @Test(arguments: [(-18, true), (7200, false)])
    func receiver_putsItselfRight_backwardsOnly(seconds: Int, isPutRight: Bool) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(WallTime(milliseconds: 0))
        let queue = try folder.queue(clock: clock)
        Self.add(1, to: queue, clock)
        try Self.record(queue, Stamp(boot: clock.now(), wall: Self.now), synced: true, by: .gpsd)
        clock.advance(by: .seconds(600))
        let later = Stamp(boot: clock.now(), wall: Self.now + .seconds(600 + seconds))
        try Self.record(queue, later, synced: true, by: .gpsd)
        let first = isPutRight ? Self.now + .seconds(seconds) : Self.now
        #expect(try Self.dates(queue) == [Dated(first, .corrected)])
        queue.close()
    }

    @Test func suspend_movesBothClocks_andNeedsNoCorrection() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(WallTime(milliseconds: 0))
        let queue = try folder.queue(clock: clock)
        Self.add(1, to: queue, clock)
        clock.advance(by: .seconds(8 * 3600))
        clock.stepWall(to: Self.now)
        try Self.record(queue, clock.stamp(), synced: true)
        clock.advance(by: .seconds(8 * 3600))
        Self.add(2, to: queue, clock)
        #expect(
            try Self.dates(queue) == [
                Dated(Self.now + .seconds(-8 * 3600), .corrected),
                Dated(Self.now + .seconds(8 * 3600), .synced),
            ]
        )
        queue.close()
    }

    @Test(arguments: [
        (0, 1000, ClockQuality.synced), (0, 1001, .corrected), (0, -1000, .synced),
        (0, -1001, .corrected), (3600, 1720, .synced), (3600, 1721, .corrected),
    ])
    func agreement_isASecondAndTwoHundredPartsInAMillion(
        distance: Int64,
        deviation: Int64,
        quality: ClockQuality
    ) {
        var map = ClockMap()
        map.add(Self.entry(1, boottime: 5000, wall: 1_000_000))
        let stamp = Stamp(
            boot: BootInstant(nanoseconds: (5000 + distance * 1000) * 1_000_000),
            wall: WallTime(milliseconds: 1_000_000 + distance * 1000 + deviation)
        )
        #expect(map.resolve(stamp, boot: 1).quality == quality)
    }

    @Test func valuesNoClockGives_harmNothing() {
        let extremes: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]
        var map = ClockMap()
        for (index, boottime) in extremes.enumerated() {
            for (other, wall) in extremes.enumerated() {
                map.add(Self.entry(Int64(index * 10 + other), boottime: boottime, wall: wall))
                for nanoseconds in extremes {
                    let stamp = Stamp(
                        boot: BootInstant(nanoseconds: nanoseconds),
                        wall: WallTime(milliseconds: wall)
                    )
                    let text = map.resolve(stamp, boot: 1).wall.rfc3339
                    #expect(text.utf8.count == 24)
                }
            }
        }
    }

    static func entry(_ id: Int64, boottime: Int64, wall: Int64) -> ClockMap.Entry {
        ClockMap.Entry(
            id: id,
            boot: 1,
            boottime: boottime,
            wall: wall,
            synced: true,
            source: .kernel
        )
    }
}
