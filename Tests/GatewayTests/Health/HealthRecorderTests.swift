// Health records: their members, when they are made, and what they agree with.
import Foundation
import Host
import Live
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing

@testable import Daemon
import Setup
@testable import Status
@testable import Upload

/// A queue with its status, whose health is recorded by a clock that the test moves.
private final class HealthFixture {
    private let temporary = TemporaryFolder()
    var root: String { temporary.path }
    let clock = ManualClock(testStart)
    let board = GatewayBoard()
    var queue: Queue
    var nextSync: BootInstant?

    init() throws {
        queue = try Queue(at: temporary.path + "/queue.sqlite", clock: clock)
    }

    deinit { queue.close() }

    func put(_ path: String, _ text: String) throws {
        try temporary.write(text, to: path)
    }

    func recorder(settling: Duration = .zero, live: LiveTap? = nil) -> HealthRecorder {
        HealthRecorder(
            queue,
            live: StateBox(live),
            clock: clock,
            deviceID: "device",
            bootID: "boot",
            after: settling,
            files: SystemFiles(root: root)
        )
    }

    func report() -> StatusReport {
        let next = nextSync
        var configuration = Configuration()
        configuration.stateDirectory = root
        return StatusCollector(
            board: board,
            queue: queue,
            clock: clock,
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: configuration,
            deviceID: "device",
            version: "1.2.3",
            bootID: "boot",
            started: clock.now() - .seconds(90),
            nextSync: { next }
        ).report()
    }

    /// The health records in the database, as they are uploaded.
    func records() throws -> [[String: Any]] {
        let newest = try queue.flushed().newest(.health)
        guard newest > 0 else { return [] }
        var records: [[String: Any]] = []
        let source = try RecordSource(reader: queue.reader(), clockMap: .max)
        try source.forEach(.health, 1...newest) { _, json in
            let record = try JSONSerialization.jsonObject(with: Data(json))
            records.append(try #require(record as? [String: Any]))
            return true
        }
        return records
    }
}

@Suite struct HealthRecorderTests {
    private static let minute = Duration.seconds(60)

    /// After `enroll` everything waited for the next `upload.interval`, and nobody said so.
    @Test func deviceThatWasJustEnrolled_hasSomethingToSend_once() throws {
        let fixture = try HealthFixture()
        var report = fixture.report()
        let hour = Duration.seconds(3600)
        // One that was enrolled before its first start.
        let first = fixture.recorder(settling: .seconds(5))
        #expect(!first.check(report, every: hour))
        fixture.clock.advance(by: .seconds(10))
        #expect(first.check(report, every: hour))
        #expect(!first.check(report, every: hour))
        #expect(try fixture.records().count == 1)
        // One that has reached its server before, and is enrolled at another.
        report.upload.lastSuccessAt = fixture.clock.wall()
        let second = fixture.recorder()
        #expect(!second.check(report, every: hour))
        #expect(try fixture.records().count == 2)
        second.waits()
        #expect(second.check(report, every: hour))
        #expect(!second.check(report, every: hour))
        #expect(try fixture.records().count == 3)
    }

    @Test func record_hasWhatTheStatusHas() throws {
        let fixture = try HealthFixture()
        for publisher in fixture.board.sources.values {
            publisher.loaded(SourceReport(device: "d"))
        }
        fixture.board.sources[.audio]?.failed(Failure("the \"microphone\" is gone"))
        let start = fixture.clock.stamp()
        fixture.queue.accept(Event(.started, source: "test", stamp: start))
        fixture.queue.record(Loss(.missed, .beacons, records: 3, from: start, to: start))
        fixture.clock.advance(by: .seconds(5))
        try fixture.queue.flushed()
        fixture.nextSync = fixture.clock.now() + .seconds(40)
        try fixture.put("/proc/loadavg", "0.52 0.58 0.59 1/389 12345\n")
        let report = fixture.report()
        fixture.recorder().check(report, every: Self.minute)

        let record = try #require(try fixture.records().first)
        #expect(report.state == .degraded)
        #expect(record["state"] as? String == report.state.rawValue)
        #expect(record["reasons"] as? [String] == report.reasons)
        #expect(report.reasons.contains { $0.contains("the \"microphone\" is gone") })
        #expect(record["version"] as? String == "1.2.3")
        #expect(record["uptime_s"] as? Int == 90)
        #expect(record["free_bytes"] as? Int64 == report.storage.freeBytes)
        #expect(record["database_bytes"] as? Int64 == report.storage.databaseBytes)
        let pending = record["pending"] as? [String: Int]
        #expect(pending == report.streams.mapValues(\.pending))
        #expect(pending?["waypost_events"] ?? 0 > 0)
        #expect(record["lost_24h"] as? [String: Int] == ["linux_bluez_beacons": 3])
        #expect(report.losses.map(\.records) == [3])
        let states = ["audio": "error", "beacons": "loaded", "location": "loaded"]
        #expect(record["sources"] as? [String: String] == states)
        #expect(record["timestamp"] as? String == start.wall.advanced(by: 5).rfc3339)
        #expect(record["oldest_pending_at"] as? String == start.wall.rfc3339)
        #expect(record["next_sync_at"] as? String == start.wall.advanced(by: 45).rfc3339)
        #expect(record["load_1m"] as? Double == 0.52)
        // This board reports nothing else.
        #expect(
            Set(record.keys) == [
                "id", "timestamp", "clock", "state", "reasons", "version", "uptime_s",
                "free_bytes", "database_bytes", "pending", "oldest_pending_at", "lost_24h",
                "sources", "load_1m", "next_sync_at",
            ]
        )
    }

    @Test func record_isMadeOncePerInterval_beforeTheUpload() throws {
        let fixture = try HealthFixture()
        let recorder = fixture.recorder(settling: .seconds(15))
        let report = fixture.report()
        var made: [BootInstant] = []
        for _ in 0..<240 {
            let before = try fixture.records().count
            recorder.check(report, every: .seconds(300))
            if try fixture.records().count > before { made.append(fixture.clock.now()) }
            fixture.clock.advance(by: .seconds(5))
        }
        let start = fixture.clock.now() - .seconds(1200)
        #expect(made.first == start + .seconds(15))
        let uploads = TimerGrid(interval: .seconds(300), device: "device")
        #expect(made.count == 5)
        for time in made.dropFirst() {
            let lead = uploads.next(after: time) - time
            #expect(lead > .seconds(20) && lead <= .seconds(30), "\(lead) before the upload")
        }
    }

    @Test func liveOutput_getsItEachMinute_andAtEachChangeOfState() throws {
        let fixture = try HealthFixture()
        let tap = try LiveTap(interval: .seconds(10))
        let recorder = fixture.recorder(live: tap)
        var report = fixture.report()
        var published: [Int] = []
        for second in stride(from: 0, to: 200, by: 5) {
            report.state = (80..<110).contains(second) ? .degraded : .healthy
            // Nothing is recorded with `health.enabled = false`.
            recorder.check(report, every: nil)
            if !tap.take(at: fixture.clock.now()).messages.isEmpty { published.append(second) }
            fixture.clock.advance(by: .seconds(5))
        }
        #expect(published == [0, 60, 80, 110, 170])
        #expect(try fixture.records().isEmpty)
    }

    @Test func timesAreCorrected_withTheClock() throws {
        let fixture = try HealthFixture()
        fixture.nextSync = fixture.clock.now() + .seconds(40)
        fixture.queue.accept(Event(.started, source: "test", stamp: fixture.clock.stamp()))
        try fixture.queue.flushed()
        fixture.recorder().check(fixture.report(), every: Self.minute)
        let before = try #require(try fixture.records().first)
        let year = Duration.seconds(365 * 86_400)
        let now = fixture.clock.stamp()
        let right = Stamp(boot: now.boot, wall: now.wall + year)
        try fixture.queue.perform { writer in
            _ = try writer.recordClock(right, synced: true, by: .gpsd)
        }
        let after = try #require(try fixture.records().first)
        for key in ["timestamp", "oldest_pending_at", "next_sync_at"] {
            let old = try #require((before[key] as? String).flatMap { WallTime(rfc3339: $0) })
            let new = try #require((after[key] as? String).flatMap { WallTime(rfc3339: $0) })
            #expect(new.milliseconds - old.milliseconds == year.milliseconds, "\(key)")
        }
    }

    /// The supply was too low between two records, and is right again.
    @Test func undervoltage_isReported_ifSeenSinceLastRecord() throws {
        let fixture = try HealthFixture()
        try fixture.put("/sys/class/hwmon/hwmon3/name", "rpi_volt\n")
        let recorder = fixture.recorder()
        for alarm in ["0\n", "1\n", "0\n", "0\n"] {
            try fixture.put("/sys/class/hwmon/hwmon3/in0_lcrit_alarm", alarm)
            recorder.check(fixture.report(), every: .seconds(120))
            fixture.clock.advance(by: .seconds(60))
        }
        recorder.check(fixture.report(), every: .seconds(120))
        let found = try fixture.records().map { $0["undervoltage"] as? Bool }
        #expect(found == [false, true, false])
    }

    @Test func losses_areThoseOfTheLastDay_acrossARestart() throws {
        let fixture = try HealthFixture()
        func lose(_ records: Int64) throws {
            let now = fixture.clock.stamp()
            fixture.queue.record(Loss(.missed, .beacons, records: records, from: now, to: now))
            try fixture.queue.flushed()
        }
        func lost() throws -> Int? {
            fixture.recorder().check(fixture.report(), every: Self.minute)
            let record = try #require(try fixture.records().last)
            return (record["lost_24h"] as? [String: Int])?["linux_bluez_beacons"]
        }
        #expect(try lost() == nil)
        try lose(5)
        #expect(try lost() == 5)
        for _ in 0..<10 {
            fixture.clock.advance(by: .seconds(3600))
            #expect(try lost() == 5)
        }
        try lose(2)
        #expect(try lost() == 7)
        // A new recorder for each record: it remembers in the database only.
        for _ in 0..<15 { fixture.clock.advance(by: .seconds(3600)); _ = try lost() }
        #expect(try lost() == 2)
        fixture.clock.advance(by: .seconds(11 * 3600))
        #expect(try lost() == nil)
        #expect(fixture.report().losses.map(\.records) == [7])
    }

    // MARK: In a gateway

    /// The number of health records that the snapshot shows.
    private func pending(_ fixture: GatewayFixture) -> Int {
        let streams = fixture.status["streams"] as? [String: [String: Any]]
        return streams?["waypost_health"]?["pending"] as? Int ?? 0
    }

    @Test func gateway_recordsItsHealth() throws {
        let fixture = try GatewayFixture()
        try waitUntil("a record") { pending(fixture) > 0 }
        fixture.stop()
        #expect(pending(fixture) == 1)
    }

    @Test func gatewayThatIsNotEnrolled_collectsNoHealth() throws {
        let fixture = try GatewayFixture(change: { configuration in
            configuration.upload.isRequired = true
            configuration.upload.endpoint = "http://127.0.0.1:1/api/ingest"
        })
        try waitUntil("a start") { fixture.readies.value >= 1 }
        #expect(fixture.fiveTicksPass())
        #expect(fixture.reasons.contains { $0.hasPrefix("nothing is collected") })
        fixture.stop()
        #expect(pending(fixture) == 0)
    }
}

extension WallTime {
    fileprivate func advanced(by seconds: Int64) -> Self {
        Self(milliseconds: milliseconds + seconds * 1000)
    }
}
