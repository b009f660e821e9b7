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

    private final class Fixture {
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
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(250, to: fixture.queue)
        fixture.queue.accept(Event(.started, source: "test", stamp: fixture.clock.stamp()))
        #expect(fixture.sync.perform(.asked) == SyncResult(left: 0))
        #expect(
            fixture.destination.sent.map(\.stream) == [.events]
                + Array(repeating: .location, count: 3)
        )
        #expect(fixture.board.state.value?.phase == .idle)
        #expect(fixture.sync.retryDelay == nil)
    }

    @Test func failure_waitsAsLongAsTheClockAndTheChanceSay() throws {
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(250, to: fixture.queue)
        fixture.destination.answer = { _ in
            Delivery(.unreachable(Failure("no way", code: .network)))
        }
        #expect(fixture.sync.perform(.tick) == SyncResult(left: 250))
        #expect(fixture.sync.retryDelay == .seconds(15))
        fixture.clock.advance(by: .seconds(5))
        #expect(fixture.sync.retryDelay == .seconds(10))
        // A tick during the backoff makes no request.
        #expect(fixture.sync.perform(.tick) == SyncResult())
        #expect(fixture.destination.sent.count == 1)
    }

    @Test func whatComesInMeanwhile_isTheNextSyncs() throws {
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(150, to: fixture.queue)
        fixture.destination.answer = { [queue = fixture.queue] _ in
            addFixes(10, to: queue)
            return Delivery(.accepted)
        }
        #expect(fixture.sync.perform(.asked) == SyncResult(left: 0))
        #expect(fixture.destination.sent.reduce(0) { $0 + $1.records } == 150)
        #expect(fixture.sync.perform(.asked).isDone)
        #expect(fixture.destination.sent.reduce(0) { $0 + $1.records } == 170)
    }

    @Test func stopBetweenTwoBatches_leavesTheRest() throws {
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(250, to: fixture.queue)
        fixture.destination.answer = { [stop = fixture.stop] _ in
            stop.raise()
            return Delivery(.accepted)
        }
        #expect(fixture.sync.perform(.asked) == SyncResult(left: 150))
        #expect(fixture.destination.sent.count == 1)
    }

    @Test func errorOfTheDestination_isAFailureOfItsOwn() throws {
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(50, to: fixture.queue)
        fixture.destination.token = { throw Failure("no token file", code: .tokenRefused) }
        let result = fixture.sync.perform(.asked)
        #expect(result.left == nil)
        #expect(!result.isDone)
        let error = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(error?.message == "no token file")
        fixture.destination.token = {}
        #expect(fixture.sync.perform(.asked).isDone)
    }

    /// Streams with nothing to send never have a success that would clear the error.
    @Test func destinationError_clearsOnAllStreams_afterASync() throws {
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(50, to: fixture.queue)
        fixture.destination.token = { throw Failure("no token file", code: .tokenRefused) }
        _ = fixture.sync.perform(.asked)
        let failed = try #require(fixture.board.state.value)
        #expect(failed.streams.count > 1)
        #expect(failed.streams.values.allSatisfy { $0.lastError != nil })
        fixture.destination.token = {}
        #expect(fixture.sync.perform(.asked).isDone)
        #expect(
            fixture.board.state.value?.streams.values.allSatisfy { $0.lastError == nil } == true
        )
    }

    /// Batches of one stream fail: the next sync begins with the stream after it.
    @Test func streamThatFails_doesNotBeginTheNextSync() throws {
        let fixture = try Fixture()
        defer { fixture.finish() }
        addFixes(50, to: fixture.queue)
        fixture.queue.accept(Event(.started, source: "test", stamp: fixture.clock.stamp()))
        fixture.destination.answer = { batch in
            batch.stream == .events
                ? Delivery(.unreachable(Failure("no way", code: .network))) : Delivery(.accepted)
        }
        #expect(fixture.sync.perform(.asked).left == 51)
        #expect(fixture.sync.perform(.asked).left == 1)
        #expect(fixture.destination.sent.map(\.stream) == [.events, .location, .events])
    }
}
