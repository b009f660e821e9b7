// The dates of effort intervals on the wire: by what is known of both ends.
import Foundation
import Host
import QueueSupport
import Records
import Support
import Testing
import Upload

@testable import Queue

@Suite struct EffortDateTests {
    /// 2026-11-21T04:30:07Z.
    private static let now = WallTime(milliseconds: 1_795_235_407_000)
    private static let behind = WallTime(milliseconds: 1_700_000_000_000)

    private let folder = TemporaryFolder()

    /// One boot of a device whose location source listens.
    private final class Boot {
        let clock: ManualClock
        let queue: Queue

        /// `right`: the time that a GNSS receiver gives, if it gives one.
        init(_ name: String, _ folder: TemporaryFolder, seen: WallTime, right: WallTime?) throws {
            clock = ManualClock(Stamp(boot: BootInstant(nanoseconds: 5_000_000_000), wall: seen))
            queue = try Queue(at: folder.path + "/q", bootID: name, clock: clock)
            if let right {
                let stamp = Stamp(boot: clock.now(), wall: right)
                try queue.perform { try $0.recordClock(stamp, synced: true, by: .gpsd) }
            }
            queue.record(.listening, of: .location)
            try pass(0)
        }

        /// Waits, and stores a fix then.
        func pass(_ seconds: Int) throws {
            clock.advance(by: .seconds(seconds))
            let fix = Fix(stamp: clock.stamp(), mode: .twoDimensional, latitude: 1, longitude: 2)
            queue.accept(fix)
            try queue.flushed()
        }

        /// Returns the intervals stored so far, from number `first` on: state, clock and length in
        /// seconds, and the time.
        func intervals(
            from first: Int64 = 1
        ) throws -> [(words: String, from: WallTime, to: WallTime)] {
            guard let last = try queue.flushed().pending(.effort)?.last else { return [] }
            var intervals: [(String, WallTime, WallTime)] = []
            let source = try RecordSource(reader: queue.reader(), clockMap: .max)
            try source.forEach(.effort, first...last) { _, json in
                let record = try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any]
                func text(_ key: String) throws -> String {
                    try #require(record?[key] as? String)
                }
                let from = try #require(WallTime(rfc3339: text("from")))
                let to = try #require(WallTime(rfc3339: text("to")))
                #expect(try text("timestamp") == text("from"))
                let seconds = (to.milliseconds - from.milliseconds) / 1000
                intervals.append(("\(try text("state")) \(try text("clock")) \(seconds)", from, to))
                return true
            }
            return intervals
        }
    }

    private func boot(_ name: String, seen: WallTime, right: WallTime? = nil) throws -> Boot {
        try Boot(name, folder, seen: seen, right: right)
    }

    @Test func neverSetClock_isNotVouchedForByTheNextBoot() throws {
        let first = try boot("a", seen: Self.behind)
        try first.pass(12)
        first.queue.close()
        let second = try boot("b", seen: Self.now, right: Self.now)
        defer { second.queue.close() }
        try second.pass(20)
        second.queue.record(.failed("gone"), of: .location)
        try second.pass(20)
        let found = try second.intervals()
        #expect(found.map(\.words).first == "recorded unsynced 12")
        #expect(found.dropFirst().first?.words.hasPrefix("unknown unsynced ") == true)
        #expect(found.last?.words == "recorded synced 20")
    }

    @Test func neverSetFutureClock_makesNoNegativeInterval() throws {
        let first = try boot("a", seen: Self.now + .seconds(86_400 * 400))
        try first.pass(12)
        first.queue.close()
        let second = try boot("b", seen: Self.now, right: Self.now)
        defer { second.queue.close() }
        try second.pass(20)
        #expect(
            try second.intervals().map(\.words) == ["recorded unsynced 12", "unknown unsynced 0"]
        )
    }

    @Test func clockSetByHand_changesNoLength() throws {
        let boot = try boot("a", seen: Self.now)
        defer { boot.queue.close() }
        try boot.pass(6)
        boot.clock.stepWall(to: Self.now + .seconds(-3600))
        try boot.pass(6)
        boot.queue.record(.failed("gone"), of: .location)
        try boot.pass(700)
        #expect(try boot.intervals().map(\.words) == ["recorded unsynced 12"])
    }

    /// The clock map would have forgotten the first boot: all its records are gone.
    @Test func bootThatWasDated_staysSo_inABootThatIsNot() throws {
        let first = try boot("a", seen: Self.behind, right: Self.now)
        try first.pass(12)
        first.queue.close()
        let second = try boot("b", seen: Self.behind)
        defer { second.queue.close() }
        try second.queue.perform { writer in
            try writer.lose(Partition(.location), 1...3)
            try writer.pruneClockMap()
        }
        try second.pass(700)
        let found = try second.intervals()
        #expect(found.map(\.words).first == "recorded corrected 12")
        #expect(found.first?.from == Self.now)
        #expect(found.dropFirst().first?.words.hasPrefix("unknown unsynced") == true)
    }

    /// Nothing that is stored needs the first boot any more, only a span that is not stored yet.
    @Test func spanFromABootWithoutRecords_keepsItsStart() throws {
        let first = try boot("a", seen: Self.behind, right: Self.now)
        try first.pass(12)
        first.queue.close()
        let second = try boot("b", seen: Self.behind)
        defer { second.queue.close() }
        #expect(try second.intervals().map(\.words) == ["recorded corrected 12"])
        try second.queue.perform { writer in
            try writer.lose(Partition(.location), 1...3)
            try writer.lose(Partition(.effort), 1...1)
            try writer.pruneClockMap()
        }
        try second.pass(700)
        let found = try second.intervals(from: 2)
        #expect(found.first?.words.hasPrefix("unknown unsynced") == true)
        // The fix counts to the end of its millisecond.
        #expect(found.first?.from == Self.now + .milliseconds(12_001))
    }

    /// The GNSS receiver's time does not set the clock, which is on another day.
    @Test func midnight_isThatOfTheRightTime() throws {
        let evening = WallTime(milliseconds: 1_795_304_400_000)
        let boot = try boot("a", seen: Self.behind, right: evening)
        defer { boot.queue.close() }
        try boot.pass(3 * 3600)
        try boot.pass(60)
        let found = try boot.intervals()
        #expect(found.map(\.to.rfc3339) == ["2026-11-22T00:00:00.000Z"])
        #expect(found.map(\.from) == [evening])
    }

    /// Nobody knows which days there were between the two boots.
    @Test func spanThatBeganAtAnUnknownTime_isNotCutAtMidnights() throws {
        let first = try boot("a", seen: Self.now + .seconds(-86_400 * 9))
        try first.pass(12)
        first.queue.close()
        let second = try boot("b", seen: Self.now, right: Self.now)
        defer { second.queue.close() }
        try second.pass(20)
        #expect(try second.intervals().count == 2)
    }
}
