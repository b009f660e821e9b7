// The clock monitor: who vouches for the clock, and steps.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

@testable import Daemon
import Status

@Suite struct ClockWatchTests {
    static let now = WallTime(milliseconds: 1_795_235_407_000)
    static let wrong = WallTime(milliseconds: 5000)

    /// A monitor over a real queue, with a manual clock and a simulated kernel.
    final class Fixture {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let clock: ManualClock
        let queue: Queue
        let vouches: StateBox<Bool>
        let watch: ClockMonitor

        init(_ wall: WallTime, synced: Bool = false) throws {
            let clock = ManualClock(
                Stamp(boot: BootInstant(nanoseconds: 20_000_000_000), wall: wall)
            )
            let vouches = StateBox(synced)
            queue = try Queue(at: temporary.path + "/queue.sqlite", clock: clock)
            watch = try ClockMonitor(queue: queue, clock: clock) { _ in vouches.value }
            self.clock = clock
            self.vouches = vouches
        }

        deinit {
            queue.close()
        }

        func pass(_ duration: Duration) {
            clock.advance(by: duration)
            watch.look()
        }

        func step(by seconds: Int) {
            clock.stepWall(to: clock.wall() + .seconds(seconds))
        }

        /// The GNSS receiver reports `right` as the current time.
        func receiver(says right: WallTime, isSettled: Bool = true) {
            watch.receiver(said: Stamp(boot: clock.now(), wall: right), isSettled: isSettled)
            watch.look()
        }

        /// Events as `kind detail`, in order.
        func events() throws -> [String] {
            guard let last = try queue.flushed().pending(.events)?.last else { return [] }
            var events: [String] = []
            try queue.reader().rows(Event.kind, 1...last) { stored in
                guard case .text(let kind) = stored.record.values[0],
                    case .text(let detail) = stored.record.values[2]
                else { return }
                events.append("\(kind) \(detail)")
            }
            return events
        }

        /// The current time as it is sent on the wire.
        func resolved() throws -> (wall: WallTime, quality: ClockQuality) {
            let stamp = clock.stamp()
            try queue.flushed()
            return try queue.reader().dates(through: .max).resolve(stamp, boot: 1)
        }

        func anchor() throws -> ClockMap.Anchor? { try queue.perform { $0.clockAnchor() } }
    }

    // MARK: The kernel

    @Test func firstSync_isRecordedAndReportedOnce() throws {
        let fixture = try Fixture(Self.wrong)
        fixture.pass(.seconds(30))
        #expect(fixture.watch.current == ClockState(isSynced: false, steppedSeconds: 0))
        #expect(try fixture.resolved().quality == .unsynced)
        fixture.clock.stepWall(to: Self.now)
        fixture.vouches.update { $0 = true }
        fixture.pass(.milliseconds(1))
        #expect(fixture.watch.current.isSynced)
        fixture.pass(.seconds(1))
        #expect(try fixture.resolved().quality == .synced)
        for _ in 0..<50 { fixture.pass(.seconds(30)) }
        #expect(
            try fixture.events() == [
                #"clock_step {"seconds":1795235372.0}"#, #"clock_synced {"by":"ntp"}"#,
            ]
        )
    }

    @Test func restartInSyncedBoot_isSynced_withoutASecondReport() throws {
        let fixture = try Fixture(Self.now, synced: true)
        #expect(fixture.watch.current.isSynced)
        // The network is gone: nobody vouches any more, and a new process starts in the same boot.
        fixture.vouches.update { $0 = false }
        let vouches = fixture.vouches
        let again = try ClockMonitor(queue: fixture.queue, clock: fixture.clock) { _ in
            vouches.value
        }
        #expect(again.current.isSynced)
        again.look()
        #expect(try fixture.events() == [])
    }

    @Test(arguments: [-3, -1, 1, 30])
    func manualStep_isReported_andIsNotAnAnchor(years: Int) throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.pass(.seconds(60))
        fixture.step(by: years * 31_536_000)
        fixture.vouches.update { $0 = false }
        fixture.pass(.seconds(60))
        #expect(fixture.watch.current.isSynced)
        #expect(fixture.watch.current.steppedSeconds == Double(years * 31_536_000))
        let resolved = try fixture.resolved()
        #expect(resolved.quality == .corrected)
        #expect(resolved.wall == Self.now + .seconds(120))
        #expect(try fixture.anchor()?.wall == Self.now.milliseconds)
        // An NTP client corrects it with another step.
        fixture.step(by: -years * 31_536_000)
        fixture.vouches.update { $0 = true }
        fixture.pass(.seconds(60))
        #expect(fixture.watch.current.steppedSeconds == 0)
        #expect(try fixture.resolved().quality == .synced)
        #expect(try fixture.resolved().wall == Self.now + .seconds(180))
        #expect(
            try fixture.events() == [
                "clock_step {\"seconds\":\(years * 31_536_000).0}",
                "clock_step {\"seconds\":\(-years * 31_536_000).0}",
            ]
        )
    }

    @Test func stepByNTP_isAnAnchor() throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.pass(.seconds(60))
        fixture.step(by: 90)
        fixture.pass(.milliseconds(1))
        fixture.pass(.seconds(60))
        #expect(try fixture.resolved().quality == .synced)
        #expect(try fixture.resolved().wall == Self.now + .milliseconds(210_001))
    }

    @Test func clockSetByHandWhileLookedAt_isNoAnchor() throws {
        let folder = try Fixture(Self.wrong)
        // The first answer is for the clock before, the second for the clock that was read.
        let answers = StateBox([false, true, false])
        let watch = try ClockMonitor(queue: folder.queue, clock: folder.clock) { _ in
            answers.update { $0.isEmpty ? false : $0.removeFirst() }
        }
        watch.look()
        #expect(!watch.current.isSynced)
        #expect(try folder.anchor() == nil)
    }

    /// A router that serves NTP without knowing the time.
    @Test func timeServerOfBeforeTheRelease_isNotBelieved() throws {
        let fixture = try Fixture(
            try #require(WallTime(rfc3339: "2015-01-01T00:00:20Z")),
            synced: true
        )
        fixture.pass(.seconds(30))
        #expect(!fixture.watch.current.isSynced)
        #expect(try fixture.resolved().quality == .unsynced)
        fixture.receiver(says: Self.now)
        #expect(fixture.watch.current.isSynced)
        fixture.pass(.seconds(60))
        #expect(try fixture.resolved().quality == .corrected)
        #expect(try fixture.resolved().wall == Self.now + .seconds(60))
        // The router has learned the time.
        fixture.clock.stepWall(to: Self.now + .seconds(60))
        fixture.pass(.seconds(1))
        #expect(try fixture.resolved().quality == .synced)
        #expect(try fixture.resolved().wall == Self.now + .seconds(61))
    }

    @Test func suspend_isNoStep() throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.pass(.seconds(8 * 3600))
        #expect(fixture.watch.current.steppedSeconds == 0)
        #expect(try fixture.events() == [])
    }

    @Test func anchors_areStoredEveryTenMinutes_inFewRows() throws {
        let fixture = try Fixture(Self.now, synced: true)
        for _ in 0..<30 * 24 * 2 { fixture.pass(.seconds(1800)) }
        try fixture.queue.perform { try $0.commit() }
        let database = try Connection(path: fixture.folder + "/queue.sqlite", access: .readOnly)
        let newest = try database.integer("SELECT max(boottime) FROM clock_map") ?? 0
        #expect(fixture.clock.now().milliseconds - newest <= 600_000)
        // Nothing was collected, so only the newest anchor is needed.
        #expect(try database.integer("SELECT count(*) FROM clock_map") ?? 99 <= 3)
    }

    @Test(arguments: [true, false])
    func looksInBetween_noteNothing(synced: Bool) throws {
        let fixture = try Fixture(Self.now, synced: synced)
        func newest() throws -> Int64 {
            try fixture.queue.perform { try $0.commit() }
            let database = try Connection(path: fixture.folder + "/queue.sqlite", access: .readOnly)
            return try database.integer("SELECT max(id) FROM clock_map") ?? 0
        }
        let before = try newest()
        for _ in 0..<19 { fixture.pass(.seconds(30)) }
        #expect(try newest() == before)
        fixture.pass(.seconds(30))
        #expect(try newest() == before + 1)
        fixture.pass(.seconds(599))
        #expect(try newest() == before + 1)
    }

    @Test func replacementDatabase_datesThisBootAsBefore() throws {
        let fixture = try Fixture(Self.wrong)
        fixture.receiver(says: Self.now)
        let before = try #require(try fixture.anchor())
        // The old database is unreadable.
        let file = fixture.folder + "/queue.sqlite"
        let size = try Data(contentsOf: URL(fileURLWithPath: file)).count
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        try handle.write(contentsOf: Data(repeating: 0x5A, count: size))
        try handle.close()
        let epoch = fixture.queue.generation
        fixture.queue.reportDamage("a test", generation: epoch)
        try waitUntil("the new database") { fixture.queue.generation != epoch }
        fixture.pass(.seconds(30))
        #expect(try fixture.anchor() == before)
        #expect(try fixture.queue.perform { $0.clockSyncedThisBoot() })
        #expect(try fixture.resolved().wall == Self.now + .seconds(30))
    }

    // MARK: The thread, and the file of timesyncd

    @Test func thread_looksWhenAskedTo() throws {
        let fixture = try Fixture(Self.now)
        let stop = try StopSignal()
        let watch = fixture.watch
        var thread: OwnThread? = try OwnThread("clock") { watch.run(until: stop) }
        defer {
            stop.raise()
            if let thread = thread.take() { thread.join() }
        }
        fixture.vouches.update { $0 = true }
        watch.check()
        try waitUntil("the sync is seen") { watch.current.isSynced }
        fixture.vouches.update { $0 = false }
        fixture.clock.advance(by: .seconds(1))
        fixture.step(by: 3600)
        watch.check()
        try waitUntil("the step is seen") { watch.current.steppedSeconds == 3600 }
    }

    @Test func mark_countsOnlyForTheClockAsItIsNow() throws {
        let file = NSTemporaryDirectory() + "mark-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: file) }
        #expect(!ClockEvidence.isFresh(file, since: nil))
        try Data().write(to: URL(fileURLWithPath: file))
        let now = SystemClock().wall()
        #expect(ClockEvidence.isFresh(file, since: nil))
        #expect(ClockEvidence.isFresh(file, since: now + .seconds(-60)))
        // The file is older than a step forward by an hour, or newer than one back by a day.
        #expect(!ClockEvidence.isFresh(file, since: now + .seconds(3600)))
        try FileManager.default.setAttributes(
            [.modificationDate: Date().addingTimeInterval(86_400)],
            ofItemAtPath: file
        )
        #expect(!ClockEvidence.isFresh(file, since: nil))
    }
}
