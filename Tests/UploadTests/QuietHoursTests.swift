// Hours without uploads.
import Configuration
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing

@testable import Upload

@Suite struct QuietHoursTests {
    private func quiet(_ text: String, _ change: (inout UploadSettings) -> Void = { _ in })
        -> UploadSettings
    {
        UploadSettings {
            $0.clockPatience = .zero
            $0.quiet = QuietHours(text)
            change(&$0)
        }
    }

    @Test(arguments: [
        // Hours, time of the day in UTC, minutes that are left (-1: none), minutes at the end of a
        // day.
        ("22:00-06:00", 21 * 60 + 59, -1, 120), ("22:00-06:00", 22 * 60, 480, 120),
        ("22:00-06:00", 0, 360, 120), ("22:00-06:00", 359, 1, 120), ("22:00-06:00", 360, -1, 120),
        ("09:00-17:30", 9 * 60, 510, 0), ("09:00-17:30", 17 * 60 + 30, -1, 0),
        ("18:00-24:00", 23 * 60, 60, 360), ("18:00-24:00", 0, -1, 360),
        ("00:00-06:00", 0, 360, 0), ("22:00-06:00 +02:00", 20 * 60, 480, 240),
        ("22:00-06:00 +02:00", 4 * 60, -1, 240), ("22:00-06:00 -05:30", 3 * 60 + 30, 480, 0),
        ("22:00-06:00 UTC", 22 * 60, 480, 120),
    ])
    func hours_areReadAndKept(text: String, minute: Int, left: Int, tail: Int) throws {
        let hours = try #require(QuietHours(text))
        let wall = BudgetFixture.midnight + .seconds(minute * 60)
        #expect(hours.left(at: wall) == (left < 0 ? nil : .seconds(left * 60)))
        #expect(hours.tail == .seconds(tail * 60))
        #expect(QuietHours(hours.text) == hours)
    }

    @Test func dateBefore1970_hasHours_too() {
        let wall = WallTime(milliseconds: -3_600_000)
        #expect(QuietHours("22:00-06:00")?.left(at: wall) == .seconds(7 * 3600))
    }

    @Test(arguments: [
        "", "22:00", "22-06", "22:00-06:00 CET", "24:01-06:00", "22:60-06:00", "6:00-22:00",
        "00:00-24:00", "06:00-06:00", "22:00-06:00 +15:00", "22:00 - 06:00", "22:00-06:00 02:00",
        "+2:00-06:00", "22:00-06:00 +02:00 x",
    ])
    func whatIsNoSpanOfADay_isRefused(text: String) { #expect(QuietHours(text) == nil) }

    @Test func quietHours_preventAutomaticSyncs_untilTheirEnd() throws {
        let fixture = try BudgetFixture(quiet("22:00-06:00"), hour: 21.9)
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        #expect(fixture.sync.perform(.tick).left == 0)
        fixture.pass(hours: 0.2)
        addFixes(10, to: fixture.queue)
        for reason in [SyncReason.tick, .retry, .network, .token] {
            #expect(fixture.sync.perform(reason) == SyncResult())
        }
        #expect(fixture.server.requests.count == 1)
        #expect(fixture.phase == .quietHours)
        // 06:00, and half of the five minutes that a fleet is spread over.
        #expect(fixture.sync.retryDelay == .milliseconds(Int64(7.9 * 3_600_000) + 150_000))
        fixture.pass(hours: 7.8)
        #expect(fixture.sync.perform(.tick) == SyncResult())
        fixture.pass(hours: 0.2)
        #expect(fixture.sync.perform(.retry).left == 0)
        #expect(fixture.server.requests.count == 2)
        #expect(fixture.sync.retryDelay == nil)
    }

    /// A GNSS receiver's time dates records without setting the clock: the hours follow the GNSS
    /// receiver.
    @Test(arguments: [(23.0, 12.0, false), (12.0, 23.0, true)])
    func clockThatOnlyAReceiverKnows_hasTheReceiversHours(
        wrong: Double,
        right: Double,
        isQuiet: Bool
    ) throws {
        let fixture = try BudgetFixture(quiet("22:00-06:00"), hour: wrong, isSynced: false)
        defer { fixture.finish() }
        try fixture.receiver(saysHour: right)
        addFixes(10, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        #expect(fixture.server.requests.isEmpty == isQuiet)
        guard isQuiet else { return }
        #expect(fixture.sync.retryDelay == .seconds(7 * 3600 + 150))
        #expect(fixture.sync.perform(.asked).isDone)
        let budget = DayBudget(fixture.queue, clock: fixture.clock)
        budget.open()
        #expect(budget.figures?.rest == .seconds(3600))
    }

    @Test func whoeverAsks_isServedAtOnce() throws {
        let fixture = try BudgetFixture(quiet("22:00-06:00"), hour: 23)
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        #expect(fixture.sync.perform(.asked).isDone)
        #expect(fixture.phase == .quietHours)
        #expect(fixture.sync.retryDelay != nil)
    }

    /// Only a minute of the day is open: the spread fits into it.
    @Test func longestHours_leaveAMinuteForUploads() throws {
        let fixture = try BudgetFixture(quiet("00:01-00:00"), hour: 12)
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        fixture.clock.advance(by: try #require(fixture.sync.retryDelay))
        #expect(fixture.sync.perform(.retry).left == 0)
    }

    @Test func longDrain_endsAsTheyBegin() throws {
        let turn = Locked<ManualClock?>(nil)
        let settings = quiet("22:00-06:00") { $0.maxBatchBytes = 2000 }
        let fixture = try BudgetFixture(settings, hour: 21.9) { _ in
            // Each request takes a minute.
            turn.value?.advance(by: .seconds(60))
            return .ok
        }
        turn.update { $0 = fixture.clock }
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        #expect(fixture.sync.perform(.tick).left ?? 0 > 0)
        #expect((5...7).contains(fixture.server.requests.count))
        #expect(fixture.phase == .quietHours)
    }

    /// Each audio chunk is an object: a batch of them takes hours on a slow link.
    @Test func longBucketBatch_pausesDuringQuietHours() throws {
        let turn = Locked<ManualClock?>(nil)
        let region = "us-east-1"
        let settings = quiet("22:00-06:00") { $0.destination = .s3 }
        let fixture = try BudgetFixture(settings, hour: 21.95, region: region) { _ in
            turn.value?.advance(by: .seconds(60))
            return .stored
        }
        turn.update { $0 = fixture.clock }
        defer { fixture.finish() }
        fixture.addAudio(8)
        _ = fixture.sync.perform(.tick)
        #expect((2...4).contains(fixture.server.requests.count))
        #expect(fixture.phase == .quietHours)
        fixture.pass(hours: 9)
        #expect(fixture.sync.perform(.retry).left == 0)
        let paths = fixture.server.requests.map(\.path)
        #expect(paths.count == 9 && Set(paths).count == 9)
    }

    /// The backoff ends long before quiet hours do: it must not wake the uploader repeatedly until
    /// then.
    @Test func wait_thatEndsInThem_wakesNobodyBeforeTheirEnd() throws {
        let fixture = try BudgetFixture(quiet("22:00-06:00"), hour: 21.99) { _ in .hangUp }
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        fixture.clock.advance(by: .seconds(60))
        #expect(fixture.sync.perform(.retry) == SyncResult())
        #expect(fixture.sync.retryDelay ?? .zero > .seconds(7 * 3600))
    }

    @Test func clockThatNobodyVouchedFor_hasNoHours() throws {
        let fixture = try BudgetFixture(quiet("22:00-06:00"), hour: 23, isSynced: false)
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        #expect(fixture.sync.perform(.tick).left == 0)
        try fixture.recordClock(isSynced: true)
        addFixes(10, to: fixture.queue)
        #expect(fixture.sync.perform(.tick) == SyncResult())
    }

    @Test func refusedToken_isReportedDuringQuietHours() throws {
        let fixture = try BudgetFixture(quiet("22:00-06:00"), hour: 21.99) { _ in
            .answer(status: 401, body: "no")
        }
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        fixture.pass(hours: 1)
        #expect(fixture.sync.perform(.tick) == SyncResult())
        #expect(fixture.phase == .tokenRefused)
        #expect(fixture.server.requests.count == 1)
    }

    /// Audio need not reserve budget for the hours at the end of the day, in which nothing is sent.
    @Test func budgetOfADay_isThatOfItsHours() throws {
        let fixture = try BudgetFixture(
            quiet("12:00-24:00") { $0.dailyBudget = 400_000 },
            hour: 11.9
        )
        defer { fixture.finish() }
        fixture.addAudio(8)
        _ = fixture.sync.perform(.tick)
        #expect(fixture.bodies > 300_000)
    }
}
