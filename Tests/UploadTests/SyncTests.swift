// Syncs on the test's thread, with its own destination, clock and random numbers, as in the
// simulator.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing
import Upload

@Suite struct SyncTests {
    /// Returns scripted verdicts, batch by batch, and remembers the batches.
    private final class ScriptedDestination: Destination {
        var records = 100
        var token: () throws -> Void = {}
        var answer: (Batch) throws -> Delivery = { _ in Delivery(.accepted) }
        private(set) var sent: [Batch] = []

        func begin() throws { try token() }

        func networkChanged() {}

        func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) -> Int64 {
            min(range.last, range.first + Int64(records) - 1)
        }

        func send(
            _ batch: Batch,
            from reader: Reader,
            mayCost: (Int64, Traffic) -> Bool,
            until stop: StopSignal
        ) throws -> Delivery {
            sent.append(batch)
            return try answer(batch)
        }
    }

    private final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 1_000_000_000_000),
                wall: WallTime(milliseconds: 0)
            )
        )
        let queue: Queue
        let destination = ScriptedDestination()
        let board = Publisher<UploadReport>()
        let stop: StopSignal
        let sync: Sync

        init() throws {
            queue = try Queue(at: temporary.path + "/q", clock: clock)
            stop = try StopSignal()
            sync = Sync(
                settings: UploadSettings(),
                queue: queue,
                destination: destination,
                clock: clock,
                random: { 0.5 },
                board: board,
                stop: stop
            )
        }

        func finish() {
            queue.close()
        }
    }

    @Test func everything_isSentOnOneThread() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(250, to: bench.queue)
        bench.queue.accept(Event(.started, source: "test", stamp: bench.clock.stamp()))
        #expect(bench.sync.perform(.asked) == SyncResult(left: 0))
        #expect(
            bench.destination.sent.map(\.stream) == [.events]
                + Array(repeating: .location, count: 3)
        )
        #expect(bench.board.state.value?.phase == .idle)
        #expect(bench.sync.retryDelay == nil)
    }

    @Test func failure_waitsAsLongAsTheClockAndTheChanceSay() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(250, to: bench.queue)
        bench.destination.answer = { _ in Delivery(.unreachable(Failure("no way", code: .network)))
        }
        #expect(bench.sync.perform(.tick) == SyncResult(left: 250))
        #expect(bench.sync.retryDelay == .seconds(15))
        bench.clock.advance(by: .seconds(5))
        #expect(bench.sync.retryDelay == .seconds(10))
        // A tick during the backoff makes no request.
        #expect(bench.sync.perform(.tick) == SyncResult())
        #expect(bench.destination.sent.count == 1)
    }

    @Test func whatComesInMeanwhile_isTheNextSyncs() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(150, to: bench.queue)
        bench.destination.answer = { [queue = bench.queue] _ in
            addFixes(10, to: queue)
            return Delivery(.accepted)
        }
        #expect(bench.sync.perform(.asked) == SyncResult(left: 0))
        #expect(bench.destination.sent.reduce(0) { $0 + $1.records } == 150)
        #expect(bench.sync.perform(.asked).isDone)
        #expect(bench.destination.sent.reduce(0) { $0 + $1.records } == 170)
    }

    @Test func stopBetweenTwoBatches_leavesTheRest() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(250, to: bench.queue)
        bench.destination.answer = { [stop = bench.stop] _ in
            stop.raise()
            return Delivery(.accepted)
        }
        #expect(bench.sync.perform(.asked) == SyncResult(left: 150))
        #expect(bench.destination.sent.count == 1)
    }

    @Test func errorOfTheDestination_isAFailureOfItsOwn() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(50, to: bench.queue)
        bench.destination.token = { throw Failure("no token file", code: .tokenRefused) }
        let result = bench.sync.perform(.asked)
        #expect(result.left == nil)
        #expect(!result.isDone)
        let error = bench.board.state.value?.streams[.location]?.lastError?.failure
        #expect(error?.message == "no token file")
        bench.destination.token = {}
        #expect(bench.sync.perform(.asked).isDone)
    }

    /// Streams with nothing to send never have a success that would clear the error.
    @Test func errorOfTheDestination_isOver_ofEveryStream_onceASyncComesToItsEnd() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(50, to: bench.queue)
        bench.destination.token = { throw Failure("no token file", code: .tokenRefused) }
        _ = bench.sync.perform(.asked)
        let failed = try #require(bench.board.state.value)
        #expect(failed.streams.count > 1)
        #expect(failed.streams.values.allSatisfy { $0.lastError != nil })
        bench.destination.token = {}
        #expect(bench.sync.perform(.asked).isDone)
        #expect(bench.board.state.value?.streams.values.allSatisfy { $0.lastError == nil } == true)
    }

    /// Batches of one stream fail: the next sync begins with the stream after it.
    @Test func streamThatFails_doesNotBeginTheNextSync() throws {
        let bench = try Bench()
        defer { bench.finish() }
        addFixes(50, to: bench.queue)
        bench.queue.accept(Event(.started, source: "test", stamp: bench.clock.stamp()))
        bench.destination.answer = { batch in
            batch.stream == .events
                ? Delivery(.unreachable(Failure("no way", code: .network))) : Delivery(.accepted)
        }
        #expect(bench.sync.perform(.asked).left == 51)
        #expect(bench.sync.perform(.asked).left == 1)
        #expect(bench.destination.sent.map(\.stream) == [.events, .location, .events])
    }
}
