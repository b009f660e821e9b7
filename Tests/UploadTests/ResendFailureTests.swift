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
    private func fixture(_ answer: Behaviour) throws -> (BudgetFixture, key: String) {
        let isMarked = Locked(false)
        let fixture = try BudgetFixture(Self.settings) { request in
            isMarked.value && Self.isOfFixes(request) ? answer : .ok
        }
        addFixes(3, to: fixture.queue)
        #expect(fixture.sync.perform(.tick).isDone)
        isMarked.update { $0 = true }
        try mark(fixture)
        return (fixture, try #require(try fixture.queue.nextResend()).key)
    }

    private static func isOfFixes(_ request: Request) -> Bool {
        String(decoding: request.body.prefix(60), as: UTF8.self).contains("places")
    }

    private func mark(_ fixture: BudgetFixture) throws {
        let range = ResendRange(.location, since: WallTime(milliseconds: 0))
        try fixture.queue.perform { _ = try $0.resend(range) }
    }

    /// Runs syncs with a sighting each, which the server accepts; none may count as failed.
    private func sync(_ fixture: BudgetFixture, _ times: Int, sightings: Int = 1) throws {
        for _ in 0..<times {
            addBeacons(sightings, to: fixture.queue)
            #expect(fixture.sync.perform(.tick).isDone)
            #expect(fixture.sync.retryDelay == nil)
            fixture.clock.advance(by: .seconds(300))
        }
    }

    private func resends(_ fixture: BudgetFixture) -> Int {
        fixture.server.requests.filter(Self.isOfFixes).count - 1
    }

    private func message(_ fixture: BudgetFixture) -> String {
        fixture.board.state.value?.streams[.location]?.lastError?.failure.message ?? ""
    }

    @Test(arguments: [Behaviour.answer(status: 500, body: "oops"), .hangUp])
    func failingResend_delaysNothing_andStopsAfterFiveTries(
        answer: Behaviour
    ) throws {
        let (fixture, key) = try fixture(answer)
        defer { fixture.finish() }
        try sync(fixture, 3)
        // The count survives a restart.
        try fixture.restart()
        try sync(fixture, 1)
        #expect(try fixture.queue.nextResend()?.key == key)
        #expect(!message(fixture).isEmpty)
        try sync(fixture, 1)
        #expect(try fixture.queue.nextResend() == nil)
        for words in [key, "3 records", "waypost resend", "upload.max_batch_bytes"] {
            #expect(message(fixture).contains(words))
        }
        let count = resends(fixture)
        try sync(fixture, 2)
        #expect(resends(fixture) == count)
        // After another request it has five tries again.
        try mark(fixture)
        try sync(fixture, 4)
        #expect(try fixture.queue.nextResend()?.key == key)
        try sync(fixture, 1)
        #expect(try fixture.queue.nextResend() == nil)
    }

    /// The server accepted nothing else in these syncs: it may be down.
    @Test(arguments: [Behaviour.answer(status: 500, body: "oops"), .hangUp])
    func outage_takesNoMarkAway(answer: Behaviour) throws {
        let (fixture, key) = try fixture(answer)
        defer { fixture.finish() }
        try sync(fixture, 12, sightings: 0)
        #expect(resends(fixture) >= 12)
        #expect(try fixture.queue.nextResend()?.key == key)
    }

    /// The server asks to wait: the resend waits, pending records do not.
    @Test(arguments: [429, 503, 409])
    func retryAfter_delaysResends_butKeepsTheirMarks(status: Int) throws {
        let (fixture, key) = try fixture(
            .answer(status: status, body: "", headers: ["Retry-After: 900"])
        )
        defer { fixture.finish() }
        try sync(fixture, 30)
        #expect(try fixture.queue.nextResend()?.key == key)
        #expect(resends(fixture) == 10)
    }

    /// A stream that has used up a limit of its own waits alone.
    @Test func waitOfOneStream_delaysNoResendOfOthers() throws {
        let (fixture, key) = try fixture(
            .answer(
                status: 429,
                body: #"{"error":"1000 files are the limit","stream":"places"}"#,
                headers: ["Retry-After: 900"]
            )
        )
        defer { fixture.finish() }
        try sync(fixture, 1)
        let all = ResendRange(nil, since: WallTime(milliseconds: 0))
        try fixture.queue.perform { _ = try $0.resend(all) }
        let fixes = try #require(try fixture.queue.nextResend())
        #expect(fixes.key == key)
        #expect(try fixture.queue.nextResend(after: fixes.id) != nil)
        try sync(fixture, 1, sightings: 0)
        #expect(try fixture.queue.nextResend(after: fixes.id) == nil)
        #expect(try fixture.queue.nextResend()?.key == key)
        #expect(resends(fixture) == 1)
    }

    @Test func keyThatTheServerStillWorksOn_isCountedByNobody() throws {
        let (fixture, key) = try fixture(.answer(status: 409, body: ""))
        defer { fixture.finish() }
        try sync(fixture, 12)
        #expect(resends(fixture) == 12)
        #expect(try fixture.queue.nextResend()?.key == key)
    }

    // MARK: Missing records

    /// `before` runs once, just before the resent batch is read.
    private func interrupted(
        _ fixture: BudgetFixture,
        _ before: @escaping (Batch) throws -> Void
    ) throws -> Upload.Sync {
        let destination = Interrupted(try fixture.destination.open(fixture.queue))
        destination.before = { [weak destination] batch in
            guard batch.stream == .location else { return }
            destination?.before = { _ in }
            try before(batch)
        }
        return Upload.Sync(
            settings: Self.settings,
            queue: fixture.queue,
            destination: destination,
            clock: fixture.clock,
            random: { 0.5 },
            board: fixture.board,
            stop: try StopSignal()
        )
    }

    @Test func trimmedBatch_isResentUnderItsNewKey() throws {
        let (fixture, _) = try fixture(.ok)
        defer { fixture.finish() }
        let sync = try interrupted(fixture) { _ in
            try fixture.queue.perform { writer in
                writer.evictionBytes = 1
                _ = try writer.evictUploaded()
            }
        }
        #expect(sync.perform(.tick).isDone)
        #expect(try fixture.queue.nextResend() == nil)
        let sent = try #require(fixture.server.requests.last)
        #expect(String(decoding: sent.body, as: UTF8.self).contains(#""total_records":2"#))
        #expect(
            sent.headers["idempotency-key"] != fixture.server.requests[0].headers["idempotency-key"]
        )
        #expect(resends(fixture) == 1)
        #expect(message(fixture).isEmpty)
    }

    @Test func batchWithARecordThatIsGone_isReported() throws {
        let (fixture, key) = try fixture(.ok)
        defer { fixture.finish() }
        try fixture.queue.perform { try $0.connection.run("DELETE FROM location WHERE id=2") }
        #expect(fixture.sync.perform(.tick).isDone)
        #expect(try fixture.queue.nextResend() == nil)
        #expect(resends(fixture) == 0)
        for words in [key, "record 2", "3 records"] { #expect(message(fixture).contains(words)) }
    }

    @Test func batchThatTheDiskDoesNotGive_isNoFailureOfTheSync() throws {
        let (fixture, key) = try fixture(.ok)
        defer { fixture.finish() }
        let sync = try interrupted(fixture) { _ in
            throw SQLiteError(code: 10, message: "disk I/O error", statement: "")
        }
        #expect(sync.perform(.tick).isDone)
        #expect(sync.retryDelay == nil)
        #expect(message(fixture).contains("look at the disk"))
        #expect(try fixture.queue.nextResend()?.key == key)
    }

    /// A batch of another file may have its number.
    @Test func markOfAnotherFile_isLeftAlone() throws {
        let (fixture, _) = try fixture(.ok)
        defer { fixture.finish() }
        let side = QueueClient(fixture.queue)
        _ = try side.mark()
        let batch = try #require(try side.nextResend(after: 0))
        let before = fixture.queue.generation
        fixture.queue.reportDamage("a test", generation: before)
        try waitUntil("a new database") { fixture.queue.generation > before }
        #expect(throws: DatabaseReplacedError.self) { try side.resent(batch) }
    }
}
