// The daily byte budget: how streams share it, and that no byte of it is spent twice.
import Configuration
import Foundation
import Host
import HTTP
import Queue
import Records
import StatusBoard
import Support
import Testing

@testable import Upload

@Suite struct BudgetTests {
    private static let budget = 400_000

    @Test func audio_leavesOthersTheirBudget_andFollowsLater() throws {
        let fixture = try BudgetFixture(.budget(Int64(Self.budget)))
        defer { fixture.finish() }
        fixture.addAudio(20)
        #expect(fixture.sync.perform(.tick).left != 0)
        // On a first day half is for the small streams.
        let first = fixture.bodies
        #expect((120_000...200_000).contains(first))
        #expect(fixture.phase == .waitingForBudget)
        #expect(fixture.board.state.value?.held == [.audio])
        // Nothing more of it at once, and the small streams may have all that is left.
        addFixes(1000, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        #expect(try fixture.pending(.location) == 0)
        #expect(fixture.bodies(of: "\"audio\"") == first)
        // Towards midnight the small streams need less.
        fixture.pass(hours: 23.9)
        _ = fixture.sync.perform(.tick)
        #expect(fixture.bodies(of: "\"audio\"") > first)
        #expect(fixture.bodies <= Self.budget)
        #expect(try fixture.pending(.audio) > 0)
    }

    @Test func smallStreams_useTheWholeBudget_renewedAtMidnight() throws {
        let fixture = try BudgetFixture(.budget(100_000))
        defer { fixture.finish() }
        addFixes(3000, to: fixture.queue)
        var left = fixture.sync.perform(.tick).left ?? 0
        #expect((60_000...100_000).contains(fixture.bodies))
        for day in 2...10 where left > 0 {
            let before = fixture.bodies
            // The small rest is spent too; then nothing is sent automatically before midnight.
            for _ in 0..<30 where fixture.sync.retryDelay == nil { _ = fixture.sync.perform(.tick) }
            let wait = try #require(fixture.sync.retryDelay)
            #expect(fixture.bodies - before < 100_000)
            // Midnight, and half of the five minutes that a fleet is spread over.
            #expect(wait == .seconds(86_400 + 150), "day \(day)")
            let spent = fixture.server.requests.count
            fixture.clock.advance(by: .seconds(86_399))
            _ = fixture.sync.perform(.tick)
            #expect(fixture.server.requests.count == spent)
            fixture.clock.advance(by: .seconds(1))
            left = fixture.sync.perform(.tick).left ?? left
            #expect(fixture.bodies <= day * 100_000)
        }
        #expect(left == 0)
        #expect(try fixture.pending(.location) == 0)
    }

    @Test func triesThatFail_countAsWell() throws {
        let fixture = try BudgetFixture(.budget(100_000)) { _ in .answer(status: 503, body: "busy")
        }
        defer { fixture.finish() }
        addFixes(200, to: fixture.queue)
        for _ in 0..<20 {
            _ = fixture.sync.perform(.asked)
            fixture.clock.advance(by: .seconds(600))
        }
        #expect(fixture.server.requests.count < 20)
        #expect(fixture.bodies <= 100_000)
        #expect(fixture.board.state.value?.held.contains(.location) == true)
    }

    /// Failures have used up the day: their backoff must not wake the uploader repeatedly until
    /// midnight.
    @Test func retry_waitsForMidnight_ifBudgetIsSpent() throws {
        let fixture = try BudgetFixture(.budget(10_000)) { _ in .answer(status: 503, body: "busy") }
        defer { fixture.finish() }
        addFixes(1, to: fixture.queue)
        let account = DayBudget(fixture.queue, clock: fixture.clock)
        for _ in 0..<20 where account.figures?.spent ?? 0 < 8000 {
            _ = fixture.sync.perform(.tick)
            fixture.clock.advance(by: .seconds(300))
        }
        #expect(fixture.sync.perform(.retry) == SyncResult())
        #expect(fixture.sync.retryDelay ?? .zero > .seconds(3600))
    }

    /// There is no room for audio, and none is pending: the records wait for the server.
    @Test func streamWithoutRecords_waitsForNoBudget() throws {
        let fixture = try BudgetFixture(.budget(10_000)) { _ in .answer(status: 503, body: "busy") }
        defer { fixture.finish() }
        addFixes(1, to: fixture.queue)
        for _ in 0..<6 {
            _ = fixture.sync.perform(.tick)
            #expect(fixture.phase == .waiting)
            #expect(fixture.board.state.value?.held == [])
            fixture.clock.advance(by: .seconds(300))
        }
        #expect(fixture.server.requests.count == 6)
    }

    /// A backlog of positions uses up each day for weeks: the streams after it still get their
    /// turn.
    @Test func fewRecords_doNotWaitForTheBacklogOfAnother() throws {
        let fixture = try BudgetFixture(.budget(100_000))
        defer { fixture.finish() }
        addFixes(5000, to: fixture.queue)
        fixture.addAudio(5)
        for _ in 1...3 {
            for _ in 0..<5 { _ = fixture.sync.perform(.tick) }
            fixture.pass(hours: 24)
            addBeacons(10, to: fixture.queue)
        }
        for _ in 0..<5 { _ = fixture.sync.perform(.tick) }
        #expect(try fixture.pending(.beacons) == 0)
        #expect(try fixture.pending(.location) > 0)
    }

    // MARK: Bytes are counted once

    @Test func reloadAndRestart_goOnWithTheSameBudget() throws {
        let settings = UploadSettings.budget(100_000)
        let fixture = try BudgetFixture(settings)
        defer { fixture.finish() }
        addFixes(3000, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        let spent = fixture.bodies
        try fixture.reload(settings)
        _ = fixture.sync.perform(.tick)
        try fixture.restart()
        _ = fixture.sync.perform(.tick)
        #expect(fixture.bodies <= 100_000)
        #expect(spent > 60_000)
        // A larger budget adds the difference.
        try fixture.reload(.budget(200_000))
        _ = fixture.sync.perform(.tick)
        #expect((150_000...200_000).contains(fixture.bodies))
    }

    @Test func startingUploader_reportsBacklog_beforeFirstSync() throws {
        let settings = UploadSettings.budget(1500)
        let fixture = try BudgetFixture(settings)
        defer { fixture.finish() }
        _ = fixture.sync.perform(.tick)
        let board = Publisher<UploadReport>()
        let destination = fixture.destination
        let uploader = Uploader(
            settings: settings,
            queue: fixture.queue,
            board: board,
            clock: fixture.clock
        ) { [queue = fixture.queue] in try destination.open(queue) }
        let stop = try StopSignal()
        let thread = try OwnThread("uploader") { uploader.run(until: stop) }
        let isReported = eventually { board.state.value?.isHeld == true }
        uploader.stop()
        stop.raise()
        thread.join()
        #expect(isReported)
    }

    @Test func budgetThatIsSetAtNoon_isOfTheWholeDay() throws {
        let fixture = try BudgetFixture(UploadSettings { $0.clockPatience = .zero })
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        #expect(fixture.sync.perform(.tick).left == 0)
        let spent = fixture.bodies
        addFixes(3000, to: fixture.queue)
        try fixture.reload(.budget(Int64(spent + 50_000)))
        _ = fixture.sync.perform(.tick)
        #expect((spent + 20_000...spent + 50_000).contains(fixture.bodies))
    }

    /// Killed repeatedly during a large request: each one counts in full.
    @Test func killInTheMidstOfARequest_countsIt() throws {
        let copies = Locked<[TemporaryFolder]>([])
        let source = TemporaryFolder()
        let settings = UploadSettings.budget(400_000)
        let fixture = try BudgetFixture(settings, temporary: source) { _ in
            // Copy the files as a kill would leave them.
            let copy = TemporaryFolder()
            for name in ["queue.sqlite", "queue.sqlite-wal"] {
                try? FileManager.default.copyItem(
                    atPath: "\(source.path)/\(name)",
                    toPath: "\(copy.path)/\(name)"
                )
            }
            copies.update { $0.append(copy) }
            return .ok
        }
        defer { fixture.finish() }
        fixture.addAudio(4)
        _ = fixture.sync.perform(.tick)
        #expect(fixture.bodies > 120_000)
        let copy = try #require(copies.value.first)
        let after = try BudgetFixture(settings, temporary: copy)
        defer { after.finish() }
        #expect(try after.pending(.audio) > 0)
        // Its half is spent.
        _ = after.sync.perform(.tick)
        #expect(after.server.requests.isEmpty)
        let today = try after.queue.traffic().first?.traffic.total ?? 0
        #expect(today >= Int64(fixture.server.requests[0].body.count))
    }

    /// A large request is committed before it begins; if nothing was sent, the uploader takes that
    /// back at its end.
    @Test func bytesToday_areThoseSent_howeverOftenReloaded() throws {
        let fixture = try BudgetFixture(.budget(400_000))
        defer { fixture.finish() }
        fixture.addAudio(4)
        var nowhere = fixture.destination
        nowhere.transport.endpoint = "http://127.0.0.1:1/api/ingest"
        let (queue, destination) = (fixture.queue, nowhere)
        for _ in 1...3 {
            let uploader = Uploader(settings: .budget(400_000), queue: queue, board: Publisher()) {
                try destination.open(queue)
            }
            let stop = try StopSignal()
            let thread = try OwnThread("uploader") { uploader.run(until: stop) }
            let isOver = Locked(false)
            uploader.sync { _ in isOver.update { $0 = true } }
            try waitUntil("the sync ends") { isOver.value }
            uploader.stop()
            stop.raise()
            thread.join()
        }
        #expect(try fixture.pending(.audio) == 4)
        #expect(try queue.traffic().reduce(0) { $0 + $1.traffic.total } < 1000)
    }

    @Test func clockThatIsSetBack_givesNothingTwice() throws {
        let fixture = try BudgetFixture(.budget(100_000), hour: 12)
        defer { fixture.finish() }
        addFixes(3000, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        for days in [-1, 1, -400, 400, 0] {
            fixture.clock.stepWall(
                to: BudgetFixture.midnight + .seconds(days < 0 ? days * 86_400 : 46_800)
            )
            _ = fixture.sync.perform(.tick)
            #expect(fixture.bodies <= 100_000, "\(days)")
        }
    }

    // MARK: Requests larger than a day's budget

    @Test func recordLargerThanBudget_isSentBesideIt_oncePerDay() throws {
        let fixture = try BudgetFixture(.budget(30_000))
        defer { fixture.finish() }
        fixture.addAudio(3)
        addFixes(50, to: fixture.queue)
        for days in 1...3 {
            for _ in 0..<12 {
                _ = fixture.sync.perform(.tick)
                fixture.pass(hours: 2)
            }
            #expect(try fixture.pending(.audio) == 3 - days)
        }
        #expect(try fixture.pending(.location) == 0)
    }

    @Test func batchThatIsLongerThanABudget_isHalved() throws {
        let isDown = Locked(true)
        let fixture = try BudgetFixture(UploadSettings { $0.clockPatience = .zero }) { _ in
            isDown.value ? .hangUp : .ok
        }
        defer { fixture.finish() }
        addFixes(3000, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        isDown.update { $0 = false }
        // A batch of some 400 kB is frozen.
        fixture.pass(hours: 24)
        try fixture.reload(.budget(150_000))
        try fixture.recordClock(isSynced: true)
        for _ in 1...6 {
            for _ in 0..<5 { _ = fixture.sync.perform(.tick) }
            fixture.pass(hours: 24)
        }
        #expect(try fixture.pending(.location) == 0)
    }

    /// The small streams take most of each day: there is room for one of the two chunks of a batch
    /// at a time.
    @Test func audioBatch_isHalved_ifLargerThanRemainingBudget() throws {
        let isDown = Locked(true)
        let fixture = try BudgetFixture(UploadSettings { $0.clockPatience = .zero }) { _ in
            isDown.value ? .hangUp : .ok
        }
        defer { fixture.finish() }
        fixture.addAudio(2)
        _ = fixture.sync.perform(.tick)
        isDown.update { $0 = false }
        try fixture.reload(.budget(400_000))
        for _ in 1...4 {
            addFixes(2100, to: fixture.queue)
            for _ in 0..<24 {
                _ = fixture.sync.perform(.tick)
                fixture.pass(hours: 0.99)
            }
            _ = fixture.sync.perform(.tick)
            fixture.pass(hours: 0.24)
        }
        #expect(try fixture.pending(.location) == 0)
        #expect(try fixture.pending(.audio) == 0)
    }

    // MARK: Syncs on request

    @Test func manualSync_keepsToTheBudget_unlessOverridden() throws {
        let fixture = try BudgetFixture(.budget(100_000))
        defer { fixture.finish() }
        addFixes(3000, to: fixture.queue)
        fixture.addAudio(5)
        for _ in 0..<5 { #expect(fixture.sync.perform(.asked).left ?? 0 > 0) }
        #expect(fixture.bodies <= 100_000)
        #expect(!fixture.sync.hasRoom || fixture.phase == .waitingForBudget)
        #expect(fixture.sync.perform(.askedOverBudget).isDone)
        #expect(fixture.bodies > 400_000)
        // It counts all the same.
        addFixes(10, to: fixture.queue)
        let requests = fixture.server.requests.count
        _ = fixture.sync.perform(.tick)
        _ = fixture.sync.perform(.asked)
        #expect(fixture.server.requests.count == requests)
        #expect(!fixture.sync.hasRoom)
        #expect(fixture.board.state.value?.isHeld == true)
    }

    @Test func whatAnEnrolmentTakes_isOfTheBudget() throws {
        let fixture = try BudgetFixture(.budget(100_000))
        defer { fixture.finish() }
        let budget = DayBudget(fixture.queue, clock: fixture.clock)
        budget.open()
        budget.spend(Traffic(sent: 90_000, received: 9_500))
        #expect(budget.figures?.spent == 99_500)
        #expect(budget.room(of: 100_000, .small, tail: .zero) == 500)
        #expect(DayBudget(fixture.queue, clock: fixture.clock).figures?.spent == 99_500)
    }
}

extension UploadReport {
    /// Nothing is sent automatically before `notBefore`, though nothing failed.
    fileprivate var isHeld: Bool {
        phase == .quietHours || phase == .waitingForBudget && notBefore != nil
    }
}
