// The status of a daily budget and of quiet hours.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing

@testable import Daemon
@testable import Field
@testable import Setup
@testable import Status
@testable import Upload

@Suite struct BudgetStatusTests {
    /// 2026-11-21T00:00:00Z.
    private static let midnight = WallTime(milliseconds: 1_795_219_200_000)

    /// A gateway's queue and status board at an hour of the day; the next tick is in six minutes.
    private final class Fixture {
        private let folder = TemporaryFolder()
        let clock: ManualClock
        let queue: Queue
        let board = GatewayBoard()
        let budget: DayBudget
        var configuration = Configuration()

        init(hour: Int, synced: Bool = true) throws {
            clock = ManualClock(
                Stamp(
                    boot: BootInstant(nanoseconds: 1_000_000_000_000),
                    wall: midnight + .seconds(hour * 3600)
                )
            )
            let path = folder.path + "/q"
            let clock = clock
            queue = try Queue(at: path, clock: clock)
            try queue.perform { try $0.recordClock(clock.stamp(), synced: synced) }
            budget = DayBudget(queue, clock: clock)
            configuration.upload.endpoint = "https://example.org/api/ingest"
            queue.accept(Event(.started, source: "test", stamp: clock.stamp()))
            try queue.flushed()
        }

        var report: StatusReport {
            StatusCollector(
                board: board,
                queue: queue,
                clock: clock,
                clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
                configuration: configuration,
                deviceID: "d",
                version: "1",
                bootID: "b",
                started: clock.now(),
                nextSync: { [clock] in clock.now() + .seconds(360) },
                budget: budget
            ).report()
        }

        func lines(_ report: StatusReport) -> [String] {
            StatusScreen(report, now: clock.wall(), isColoured: false).text
                .components(separatedBy: "\n")
        }
    }

    @Test func without_nothingIsSaidOfThem() throws {
        let fixture = try Fixture(hour: 12)
        defer { fixture.queue.close() }
        let text = String(decoding: fixture.report.json, as: UTF8.self)
        #expect(!text.contains("budget") && !text.contains("quiet") && !text.contains("waits_for"))
        #expect(fixture.lines(fixture.report).contains("upload    idle, next in 6 min, 0 B today"))
        #expect(ServerCheck.waiting(fixture.report) == nil)
    }

    @Test func quietHours_followGNSSTime_ifSystemClockIsWrong() throws {
        let fixture = try Fixture(hour: 12, synced: false)
        defer { fixture.queue.close() }
        fixture.configuration.upload.quiet = QuietHours("22:00-06:00")
        let right = Stamp(boot: fixture.clock.now(), wall: Self.midnight + .seconds(23 * 3600))
        try fixture.queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        try fixture.queue.flushed()
        // Seven hours later, on the clock that `status` shows.
        #expect(fixture.report.upload.quietUntil?.rfc3339 == "2026-11-21T19:00:00.000Z")
    }

    /// A clock that starts each day at its last shutdown would count all days as one.
    @Test func bytesToday_followGNSSDay_ifSystemClockIsWrong() throws {
        let fixture = try Fixture(hour: 12, synced: false)
        defer { fixture.queue.close() }
        let right = Stamp(boot: fixture.clock.now(), wall: Self.midnight + .seconds(23 * 3600))
        try fixture.queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        try fixture.queue.perform { try $0.record(Traffic(sent: 5000, received: 0)) }
        #expect(fixture.report.upload.bytesToday == 5000)
        fixture.clock.advance(by: .seconds(3600))
        #expect(fixture.report.upload.bytesToday == 0)
    }

    @Test func budget_isReportedWithWaitingRecords() throws {
        let fixture = try Fixture(hour: 12)
        defer { fixture.queue.close() }
        fixture.configuration.upload.dailyBudget = 20_000_000
        fixture.budget.open()
        fixture.budget.spend(Traffic(sent: 15_000_000, received: 200_000))
        let reads = fixture.report
        #expect(
            fixture.lines(reads).contains("upload    idle, next in 6 min, 15.2 MB of 20.0 MB today")
        )
        #expect(ServerCheck.waiting(reads)?.state == .ok)
        fixture.budget.spend(Traffic(sent: 4_800_000))
        var upload = UploadReport()
        (upload.phase, upload.held) = (.waitingForBudget, [.events])
        upload.notBefore = fixture.clock.now() + .seconds(43_200)
        fixture.board.upload.loaded(upload)
        let report = fixture.report
        #expect(
            report.upload.budget
                == .init(
                    bytes: 20_000_000,
                    spentBytes: 20_000_000,
                    renewsAt: Self.midnight + .seconds(86_400)
                )
        )
        #expect(report.upload.nextSyncAt?.rfc3339 == "2026-11-22T00:00:00.000Z")
        #expect(report.streams["waypost_events"]?.waitsFor == "daily budget")
        #expect(report.streams["linux_alsa_audio"]?.waitsFor == nil)
        // The state is healthy.
        #expect(report.state == .healthy)
        let lines = fixture.lines(report)
        #expect(
            lines.contains(
                "upload    waiting for budget, next in 12 h, 20.0 MB of 20.0 MB today"
            )
        )
        #expect(lines.contains { $0.hasSuffix("waits: daily budget") })
        let metrics = PrometheusText(report, at: fixture.clock.wall()).text
        #expect(metrics.contains("\nwaypost_upload_budget_bytes 20000000\n"))
        #expect(metrics.contains("\nwaypost_upload_budget_spent_bytes 20000000\n"))
        #expect(StatusReport(json: report.json) == report)
        let finding = ServerCheck.waiting(report)
        #expect(finding?.state == .warn)
        #expect(finding?.what.contains("waypost_events waits") == true)
    }

    @Test func quietHours_areReportedAtStart_withTheNextSync() throws {
        let fixture = try Fixture(hour: 22)
        defer { fixture.queue.close() }
        fixture.configuration.upload.quiet = QuietHours("22:00-06:00")
        fixture.board.upload.loaded(UploadReport())
        let report = fixture.report
        #expect(report.upload.state == .quietHours)
        #expect(report.upload.quietUntil?.rfc3339 == "2026-11-22T06:00:00.000Z")
        #expect(report.upload.nextSyncAt?.rfc3339 == "2026-11-22T06:00:00.000Z")
        #expect(report.streams["waypost_events"]?.waitsFor == "quiet hours")
        #expect(
            report.streams["waypost_events"]?.nextAttemptAt?.rfc3339 == "2026-11-22T06:00:00.000Z"
        )
        #expect(fixture.lines(report).contains("upload    quiet hours, next in 8 h, 0 B today"))
        #expect(ServerCheck.waiting(report)?.state == .ok)
        // The uploader reports its next time.
        var upload = UploadReport()
        (upload.phase, upload.notBefore) = (.quietHours, fixture.clock.now() + .seconds(28_900))
        fixture.board.upload.loaded(upload)
        #expect(fixture.report.upload.nextSyncAt?.rfc3339 == "2026-11-22T06:01:40.000Z")
    }

    /// After a failure, no tick starts a sync before the backoff ends, and one comes at its end.
    @Test(arguments: [60, 3600])
    func nextSync_isAtTheEndOfTheWaitAfterAFailure(seconds: Int64) throws {
        let fixture = try Fixture(hour: 12)
        defer { fixture.queue.close() }
        var upload = UploadReport()
        (upload.phase, upload.notBefore) = (.waiting, fixture.clock.now() + .seconds(seconds))
        fixture.board.upload.loaded(upload)
        let end = fixture.clock.wall() + .seconds(seconds)
        #expect(fixture.report.upload.nextSyncAt == end)
        #expect(fixture.report.streams["waypost_events"]?.nextAttemptAt == end)
    }

    /// The rest of a backlog is sent at the next tick, or without a tick.
    @Test(arguments: [(60, 60), (3600, 360)])
    func restOfABacklog_goesAtTheNextTickAtTheLatest(rest: Int64, next: Int64) throws {
        let fixture = try Fixture(hour: 12)
        defer { fixture.queue.close() }
        var upload = UploadReport()
        (upload.phase, upload.atTheLatest) = (.waiting, fixture.clock.now() + .seconds(rest))
        fixture.board.upload.loaded(upload)
        let time = fixture.clock.wall() + .seconds(next)
        #expect(fixture.report.upload.nextSyncAt == time)
        #expect(fixture.report.streams["waypost_events"]?.nextAttemptAt == time)
    }

    /// A tick in quiet hours starts no sync.
    @Test func nextSync_isNotInQuietHours() throws {
        let fixture = try Fixture(hour: 21)
        defer { fixture.queue.close() }
        fixture.configuration.upload.quiet = QuietHours("21:05-06:00")
        let report = fixture.report
        #expect(report.upload.state == .idle)
        #expect(report.upload.quietUntil == nil)
        #expect(report.upload.nextSyncAt?.rfc3339 == "2026-11-22T06:00:00.000Z")
    }
}
