// Resent batches that fail or cannot be read do not delay pending records.
import Configuration
import Foundation
import Host
import Records
import SQLite
import StatusBoard
import Support
import Testing

@testable import Queue
@testable import Upload

/// A bench's destination with a hook that runs just before a batch's records are read.
private final class Interrupted: Destination {
    private let destination: any Destination
    var before: (Batch) throws -> Void = { _ in }

    init(_ destination: any Destination) { self.destination = destination }

    func begin() throws { try destination.begin() }
    func networkChanged() { destination.networkChanged() }

    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
        try destination.lastRecord(of: range, limit: limit, from: reader)
    }

    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery {
        try before(batch)
        return try destination.send(batch, from: reader, mayCost: mayCost, until: stop)
    }
}

@Suite struct ResendFailureTests {
    private static let settings = UploadSettings { $0.clockPatience = .zero }

    /// Uploads and marks three fixes; `answer` is the server's reply to their resend.
    private func bench(_ answer: Behaviour) throws -> (BudgetBench, key: String) {
        let isMarked = Locked(false)
        let bench = try BudgetBench(Self.settings) { request in
            isMarked.value && Self.isOfFixes(request) ? answer : .ok
        }
        addFixes(3, to: bench.queue)
        #expect(bench.sync.perform(.tick).isDone)
        isMarked.update { $0 = true }
        try mark(bench)
        return (bench, try #require(try bench.queue.nextResend()).key)
    }

    private static func isOfFixes(_ request: Request) -> Bool {
        String(decoding: request.body.prefix(60), as: UTF8.self).contains("places")
    }

    private func mark(_ bench: BudgetBench) throws {
        let range = ResendRange(.location, since: WallTime(milliseconds: 0))
        try bench.queue.perform { _ = try $0.resend(range) }
    }

    /// Runs syncs with a sighting each, which the server accepts; none may count as failed.
    private func sync(_ bench: BudgetBench, _ times: Int, sightings: Int = 1) throws {
        for _ in 0..<times {
            addBeacons(sightings, to: bench.queue)
            #expect(bench.sync.perform(.tick).isDone)
            #expect(bench.sync.retryDelay == nil)
            bench.clock.advance(by: .seconds(300))
        }
    }

    private func resends(_ bench: BudgetBench) -> Int {
        bench.server.requests.filter(Self.isOfFixes).count - 1
    }

    private func message(_ bench: BudgetBench) -> String {
        bench.board.state.value?.streams[.location]?.lastError?.failure.message ?? ""
    }

    @Test(arguments: [Behaviour.answer(status: 500, body: "oops"), .hangUp])
    func batchThatNeverGetsThrough_delaysNothing_andGoesNoMoreAfterFiveTimes(
        answer: Behaviour
    ) throws {
        let (bench, key) = try bench(answer)
        defer { bench.finish() }
        try sync(bench, 3)
        // The count survives a restart.
        try bench.restart()
        try sync(bench, 1)
        #expect(try bench.queue.nextResend()?.key == key)
        #expect(!message(bench).isEmpty)
        try sync(bench, 1)
        #expect(try bench.queue.nextResend() == nil)
        for words in [key, "3 records", "waypost resend", "upload.max_batch_bytes"] {
            #expect(message(bench).contains(words))
        }
        let count = resends(bench)
        try sync(bench, 2)
        #expect(resends(bench) == count)
        // After another request it has five tries again.
        try mark(bench)
        try sync(bench, 4)
        #expect(try bench.queue.nextResend()?.key == key)
        try sync(bench, 1)
        #expect(try bench.queue.nextResend() == nil)
    }

    /// The server accepted nothing else in these syncs: it may be down.
    @Test(arguments: [Behaviour.answer(status: 500, body: "oops"), .hangUp])
    func outage_takesNoMarkAway(answer: Behaviour) throws {
        let (bench, key) = try bench(answer)
        defer { bench.finish() }
        try sync(bench, 12, sightings: 0)
        #expect(resends(bench) >= 12)
        #expect(try bench.queue.nextResend()?.key == key)
    }

    /// The server asks to wait: the resend waits, pending records do not.
    @Test(arguments: [429, 503, 409])
    func serverThatAsksForAWait_hasItFromResends_andTakesNoMarkAway(status: Int) throws {
        let (bench, key) = try bench(
            .answer(status: status, body: "", headers: ["Retry-After: 900"])
        )
        defer { bench.finish() }
        try sync(bench, 30)
        #expect(try bench.queue.nextResend()?.key == key)
        #expect(resends(bench) == 10)
    }

    /// A stream that has used up a limit of its own waits alone.
    @Test func waitOfOneStream_delaysNoResendOfOthers() throws {
        let (bench, key) = try bench(
            .answer(
                status: 429,
                body: #"{"error":"1000 files are the limit","stream":"places"}"#,
                headers: ["Retry-After: 900"]
            )
        )
        defer { bench.finish() }
        try sync(bench, 1)
        let all = ResendRange(nil, since: WallTime(milliseconds: 0))
        try bench.queue.perform { _ = try $0.resend(all) }
        let fixes = try #require(try bench.queue.nextResend())
        #expect(fixes.key == key)
        #expect(try bench.queue.nextResend(after: fixes.id) != nil)
        try sync(bench, 1, sightings: 0)
        #expect(try bench.queue.nextResend(after: fixes.id) == nil)
        #expect(try bench.queue.nextResend()?.key == key)
        #expect(resends(bench) == 1)
    }

    @Test func keyThatTheServerStillWorksOn_isCountedByNobody() throws {
        let (bench, key) = try bench(.answer(status: 409, body: ""))
        defer { bench.finish() }
        try sync(bench, 12)
        #expect(resends(bench) == 12)
        #expect(try bench.queue.nextResend()?.key == key)
    }

    // MARK: Missing records

    /// `before` runs once, just before the resent batch is read.
    private func interrupted(
        _ bench: BudgetBench,
        _ before: @escaping (Batch) throws -> Void
    ) throws -> Upload.Sync {
        let destination = Interrupted(try bench.destination.open(bench.queue))
        destination.before = { [weak destination] batch in
            guard batch.stream == .location else { return }
            destination?.before = { _ in }
            try before(batch)
        }
        return Upload.Sync(
            settings: Self.settings,
            queue: bench.queue,
            destination: destination,
            clock: bench.clock,
            random: { 0.5 },
            board: bench.board,
            stop: try StopSignal()
        )
    }

    @Test func batchThatLosesItsFirstRecordsMeanwhile_goesUnderItsNewKey() throws {
        let (bench, _) = try bench(.ok)
        defer { bench.finish() }
        let sync = try interrupted(bench) { _ in
            try bench.queue.perform { writer in
                writer.evictionBytes = 1
                _ = try writer.evictUploaded()
            }
        }
        #expect(sync.perform(.tick).isDone)
        #expect(try bench.queue.nextResend() == nil)
        let sent = try #require(bench.server.requests.last)
        #expect(String(decoding: sent.body, as: UTF8.self).contains(#""total_records":2"#))
        #expect(
            sent.headers["idempotency-key"] != bench.server.requests[0].headers["idempotency-key"]
        )
        #expect(resends(bench) == 1)
        #expect(message(bench).isEmpty)
    }

    @Test func batchWithARecordThatIsGone_isReported() throws {
        let (bench, key) = try bench(.ok)
        defer { bench.finish() }
        try bench.queue.perform { try $0.connection.run("DELETE FROM location WHERE id=2") }
        #expect(bench.sync.perform(.tick).isDone)
        #expect(try bench.queue.nextResend() == nil)
        #expect(resends(bench) == 0)
        for words in [key, "record 2", "3 records"] { #expect(message(bench).contains(words)) }
    }

    @Test func batchThatTheDiskDoesNotGive_isNoFailureOfTheSync() throws {
        let (bench, key) = try bench(.ok)
        defer { bench.finish() }
        let sync = try interrupted(bench) { _ in
            throw SQLiteError(code: 10, message: "disk I/O error", statement: "")
        }
        #expect(sync.perform(.tick).isDone)
        #expect(sync.retryDelay == nil)
        #expect(message(bench).contains("look at the disk"))
        #expect(try bench.queue.nextResend()?.key == key)
    }

    /// A batch of another file may have its number.
    @Test func markOfAnotherFile_isLeftAlone() throws {
        let (bench, _) = try bench(.ok)
        defer { bench.finish() }
        let side = QueueClient(bench.queue)
        _ = try side.mark()
        let batch = try #require(try side.nextResend(after: 0))
        let before = bench.queue.generation
        bench.queue.reportDamage("a test", generation: before)
        try waitUntil("a new database") { bench.queue.generation > before }
        #expect(throws: DatabaseReplaced.self) { try side.resent(batch) }
    }
}
