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

    @Test func sound_leavesTheOthersTheirs_andTheRestComesLaterInTheDay() throws {
        let bench = try BudgetBench(.budget(Int64(Self.budget)))
        defer { bench.finish() }
        bench.addSound(20)
        #expect(bench.sync.perform(.tick).left != 0)
        // On a first day half is for the small streams.
        let first = bench.bodies
        #expect((120_000...200_000).contains(first))
        #expect(bench.phase == .waitingForBudget)
        #expect(bench.board.state.value?.held == [.audio])
        // Nothing more of it at once, and the small streams may have all that is left.
        addFixes(1000, to: bench.queue)
        _ = bench.sync.perform(.tick)
        #expect(try bench.pending(.location) == 0)
        #expect(bench.bodies(of: "\"audio\"") == first)
        // Towards midnight the small streams need less.
        bench.pass(hours: 23.9)
        _ = bench.sync.perform(.tick)
        #expect(bench.bodies(of: "\"audio\"") > first)
        #expect(bench.bodies <= Self.budget)
        #expect(try bench.pending(.audio) > 0)
    }

    @Test func smallStreams_goUpToTheWholeBudget_andTheNextDaysComesAtMidnight() throws {
        let bench = try BudgetBench(.budget(100_000))
        defer { bench.finish() }
        addFixes(3000, to: bench.queue)
        var left = bench.sync.perform(.tick).left ?? 0
        #expect((60_000...100_000).contains(bench.bodies))
        for day in 2...10 where left > 0 {
            let before = bench.bodies
            // The small rest is spent too; then nothing is sent automatically before midnight.
            for _ in 0..<30 where bench.sync.retryDelay == nil { _ = bench.sync.perform(.tick) }
            let wait = try #require(bench.sync.retryDelay)
            #expect(bench.bodies - before < 100_000)
            // Midnight, and half of the five minutes that a fleet is spread over.
            #expect(wait == .seconds(86_400 + 150), "day \(day)")
            let spent = bench.server.requests.count
            bench.clock.advance(by: .seconds(86_399))
            _ = bench.sync.perform(.tick)
            #expect(bench.server.requests.count == spent)
            bench.clock.advance(by: .seconds(1))
            left = bench.sync.perform(.tick).left ?? left
            #expect(bench.bodies <= day * 100_000)
        }
        #expect(left == 0)
        #expect(try bench.pending(.location) == 0)
    }

    @Test func triesThatFail_countAsWell() throws {
        let bench = try BudgetBench(.budget(100_000)) { _ in .answer(status: 503, body: "busy") }
        defer { bench.finish() }
        addFixes(200, to: bench.queue)
        for _ in 0..<20 {
            _ = bench.sync.perform(.asked)
            bench.clock.advance(by: .seconds(600))
        }
        #expect(bench.server.requests.count < 20)
        #expect(bench.bodies <= 100_000)
        #expect(bench.board.state.value?.held.contains(.location) == true)
    }

    /// Failures have used up the day: their backoff must not wake the uploader repeatedly until
    /// midnight.
    @Test func wait_thatEndsWithTheBudgetSpent_wakesNobodyBeforeMidnight() throws {
        let bench = try BudgetBench(.budget(10_000)) { _ in .answer(status: 503, body: "busy") }
        defer { bench.finish() }
        addFixes(1, to: bench.queue)
        let account = DayBudget(bench.queue, clock: bench.clock)
        for _ in 0..<20 where account.figures?.spent ?? 0 < 8000 {
            _ = bench.sync.perform(.tick)
            bench.clock.advance(by: .seconds(300))
        }
        #expect(bench.sync.perform(.retry) == SyncResult())
        #expect(bench.sync.retryDelay ?? .zero > .seconds(3600))
    }

    /// There is no room for audio, and none is pending: the records wait for the server.
    @Test func streamWithoutRecords_waitsForNoBudget() throws {
        let bench = try BudgetBench(.budget(10_000)) { _ in .answer(status: 503, body: "busy") }
        defer { bench.finish() }
        addFixes(1, to: bench.queue)
        for _ in 0..<6 {
            _ = bench.sync.perform(.tick)
            #expect(bench.phase == .waiting)
            #expect(bench.board.state.value?.held == [])
            bench.clock.advance(by: .seconds(300))
        }
        #expect(bench.server.requests.count == 6)
    }

    /// A backlog of positions uses up each day for weeks: the streams after it still get their
    /// turn.
    @Test func fewRecords_doNotWaitForTheBacklogOfAnother() throws {
        let bench = try BudgetBench(.budget(100_000))
        defer { bench.finish() }
        addFixes(5000, to: bench.queue)
        bench.addSound(5)
        for _ in 1...3 {
            for _ in 0..<5 { _ = bench.sync.perform(.tick) }
            bench.pass(hours: 24)
            addBeacons(10, to: bench.queue)
        }
        for _ in 0..<5 { _ = bench.sync.perform(.tick) }
        #expect(try bench.pending(.beacons) == 0)
        #expect(try bench.pending(.location) > 0)
    }

    // MARK: Bytes are counted once

    @Test func reloadAndRestart_goOnWithTheSameBudget() throws {
        let settings = UploadSettings.budget(100_000)
        let bench = try BudgetBench(settings)
        defer { bench.finish() }
        addFixes(3000, to: bench.queue)
        _ = bench.sync.perform(.tick)
        let spent = bench.bodies
        try bench.reload(settings)
        _ = bench.sync.perform(.tick)
        try bench.restart()
        _ = bench.sync.perform(.tick)
        #expect(bench.bodies <= 100_000)
        #expect(spent > 60_000)
        // A larger budget adds the difference.
        try bench.reload(.budget(200_000))
        _ = bench.sync.perform(.tick)
        #expect((150_000...200_000).contains(bench.bodies))
    }

    @Test func uploaderThatStarts_saysWhatWaits_beforeItsFirstSync() throws {
        let settings = UploadSettings.budget(1500)
        let bench = try BudgetBench(settings)
        defer { bench.finish() }
        _ = bench.sync.perform(.tick)
        let board = Publisher<UploadReport>()
        let destination = bench.destination
        let uploader = Uploader(
            settings: settings,
            queue: bench.queue,
            board: board,
            clock: bench.clock
        ) { [queue = bench.queue] in try destination.open(queue) }
        let stop = try StopSignal()
        let thread = try OwnThread("uploader") { uploader.run(until: stop) }
        let isTold = eventually { board.state.value?.isHeld == true }
        uploader.stop()
        stop.raise()
        thread.join()
        #expect(isTold)
    }

    @Test func budgetThatIsSetAtNoon_isOfTheWholeDay() throws {
        let bench = try BudgetBench(UploadSettings { $0.clockPatience = .zero })
        defer { bench.finish() }
        addFixes(500, to: bench.queue)
        #expect(bench.sync.perform(.tick).left == 0)
        let spent = bench.bodies
        addFixes(3000, to: bench.queue)
        try bench.reload(.budget(Int64(spent + 50_000)))
        _ = bench.sync.perform(.tick)
        #expect((spent + 20_000...spent + 50_000).contains(bench.bodies))
    }

    /// Killed repeatedly during a large request: each one counts in full.
    @Test func killInTheMidstOfARequest_countsIt() throws {
        let copies = Locked<[TemporaryFolder]>([])
        let source = TemporaryFolder()
        let settings = UploadSettings.budget(400_000)
        let bench = try BudgetBench(settings, temporary: source) { _ in
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
        defer { bench.finish() }
        bench.addSound(4)
        _ = bench.sync.perform(.tick)
        #expect(bench.bodies > 120_000)
        let copy = try #require(copies.value.first)
        let after = try BudgetBench(settings, temporary: copy)
        defer { after.finish() }
        #expect(try after.pending(.audio) > 0)
        // Its half is spent.
        _ = after.sync.perform(.tick)
        #expect(after.server.requests.isEmpty)
        let today = try after.queue.traffic().first?.traffic.total ?? 0
        #expect(today >= Int64(bench.server.requests[0].body.count))
    }

    /// A large request is committed before it begins; if nothing was sent, the uploader takes that
    /// back at its end.
    @Test func bytesOfToday_areThoseThatWent_howeverOftenAReloadComes() throws {
        let bench = try BudgetBench(.budget(400_000))
        defer { bench.finish() }
        bench.addSound(4)
        var nowhere = bench.destination
        nowhere.transport.endpoint = "http://127.0.0.1:1/api/ingest"
        let (queue, destination) = (bench.queue, nowhere)
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
        #expect(try bench.pending(.audio) == 4)
        #expect(try queue.traffic().reduce(0) { $0 + $1.traffic.total } < 1000)
    }

    @Test func clockThatIsSetBack_givesNothingTwice() throws {
        let bench = try BudgetBench(.budget(100_000), hour: 12)
        defer { bench.finish() }
        addFixes(3000, to: bench.queue)
        _ = bench.sync.perform(.tick)
        for days in [-1, 1, -400, 400, 0] {
            bench.clock.stepWall(
                to: BudgetBench.midnight + .seconds(days < 0 ? days * 86_400 : 46_800)
            )
            _ = bench.sync.perform(.tick)
            #expect(bench.bodies <= 100_000, "\(days)")
        }
    }

    // MARK: Requests larger than a day's budget

    @Test func recordThatIsLongerThanABudget_goesBesideIt_onceADay() throws {
        let bench = try BudgetBench(.budget(30_000))
        defer { bench.finish() }
        bench.addSound(3)
        addFixes(50, to: bench.queue)
        for days in 1...3 {
            for _ in 0..<12 {
                _ = bench.sync.perform(.tick)
                bench.pass(hours: 2)
            }
            #expect(try bench.pending(.audio) == 3 - days)
        }
        #expect(try bench.pending(.location) == 0)
    }

    @Test func batchThatIsLongerThanABudget_isHalved() throws {
        let isDown = Locked(true)
        let bench = try BudgetBench(UploadSettings { $0.clockPatience = .zero }) { _ in
            isDown.value ? .hangUp : .ok
        }
        defer { bench.finish() }
        addFixes(3000, to: bench.queue)
        _ = bench.sync.perform(.tick)
        isDown.update { $0 = false }
        // A batch of some 400 kB is frozen.
        bench.pass(hours: 24)
        try bench.reload(.budget(150_000))
        try bench.noteClock(isSynced: true)
        for _ in 1...6 {
            for _ in 0..<5 { _ = bench.sync.perform(.tick) }
            bench.pass(hours: 24)
        }
        #expect(try bench.pending(.location) == 0)
    }

    /// The small streams take most of each day: there is room for one of the two chunks of a batch
    /// at a time.
    @Test func batchOfSound_thatIsLongerThanWhatTheOthersLeave_isHalved() throws {
        let isDown = Locked(true)
        let bench = try BudgetBench(UploadSettings { $0.clockPatience = .zero }) { _ in
            isDown.value ? .hangUp : .ok
        }
        defer { bench.finish() }
        bench.addSound(2)
        _ = bench.sync.perform(.tick)
        isDown.update { $0 = false }
        try bench.reload(.budget(400_000))
        for _ in 1...4 {
            addFixes(2100, to: bench.queue)
            for _ in 0..<24 {
                _ = bench.sync.perform(.tick)
                bench.pass(hours: 0.99)
            }
            _ = bench.sync.perform(.tick)
            bench.pass(hours: 0.24)
        }
        #expect(try bench.pending(.location) == 0)
        #expect(try bench.pending(.audio) == 0)
    }

    // MARK: Syncs on request

    @Test func whoeverAsks_keepsToTheBudget_unlessTheySayOtherwise() throws {
        let bench = try BudgetBench(.budget(100_000))
        defer { bench.finish() }
        addFixes(3000, to: bench.queue)
        bench.addSound(5)
        for _ in 0..<5 { #expect(bench.sync.perform(.asked).left ?? 0 > 0) }
        #expect(bench.bodies <= 100_000)
        #expect(!bench.sync.hasRoom || bench.phase == .waitingForBudget)
        #expect(bench.sync.perform(.askedOverBudget).isDone)
        #expect(bench.bodies > 400_000)
        // It counts all the same.
        addFixes(10, to: bench.queue)
        let requests = bench.server.requests.count
        _ = bench.sync.perform(.tick)
        _ = bench.sync.perform(.asked)
        #expect(bench.server.requests.count == requests)
        #expect(!bench.sync.hasRoom)
        #expect(bench.board.state.value?.isHeld == true)
    }

    @Test func whatAnEnrolmentTakes_isOfTheBudget() throws {
        let bench = try BudgetBench(.budget(100_000))
        defer { bench.finish() }
        let budget = DayBudget(bench.queue, clock: bench.clock)
        budget.open()
        budget.spend(Traffic(sent: 90_000, received: 9_500))
        #expect(budget.figures?.spent == 99_500)
        #expect(budget.room(of: 100_000, .small, tail: .zero) == 500)
        #expect(DayBudget(bench.queue, clock: bench.clock).figures?.spent == 99_500)
    }
}

extension UploadReport {
    /// Nothing is sent automatically before `notBefore`, though nothing failed.
    fileprivate var isHeld: Bool {
        phase == .quietHours || phase == .waitingForBudget && notBefore != nil
    }
}
