// The live database is replaced at the worst points of a sync: earlier reads do not apply to the
// new one.
import Configuration
import Foundation
import Host
import Queue
import Records
import SQLite
import StatusBoard
import Support
import Testing
import Upload

@Suite struct ReplacedMeanwhileTests {
    /// A destination that fails at its first read and remembers the ids that it is given to send.
    private final class Watching: Destination {
        var look: () throws -> Void = {}
        private(set) var sent: [String: [String]] = [:]

        func begin() throws {}
        func networkChanged() {}

        func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
            let once = look
            look = {}
            try once()
            return range.last
        }

        func send(
            _ batch: Batch,
            from reader: Reader,
            mayCost: (Int64, Traffic) -> Bool,
            until stop: StopSignal
        ) throws -> Delivery {
            let range = batch.first...batch.last
            let ids = try reader.ids(batch.stream, range)
            sent[batch.key] = try range.map { try ids.id($0) }
            return Delivery(.accepted)
        }
    }

    /// Has the live database replaced, and waits until `count` fixes of older ones are pending.
    private static func replace(_ queue: Queue, older count: Int) throws {
        let before = queue.generation
        queue.reportDamage("a test", generation: before)
        try waitUntil("a new database") { queue.generation > before }
        try waitUntil("the salvage") {
            guard !queue.setAside.map(\.waiting).contains(nil) else { return false }
            return try queue.unsent(.location, through: 0) == count
        }
    }

    private final class Fixture {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let queue: Queue
        let destination = Watching()
        let board = Publisher<UploadReport>()
        let sync: Sync

        init(byHand: Bool = false) throws {
            let path = temporary.path + "/q"
            var settings = QueueSettings(path: path, bootID: "b", appVersion: "1")
            settings.isTurnedByHand = byHand
            queue = try Queue(settings: settings)
            sync = Sync(
                settings: UploadSettings { $0.clockPatience = .zero },
                queue: queue,
                destination: destination,
                clock: SystemClock(),
                random: { 0.5 },
                board: board,
                stop: try StopSignal()
            )
        }
    }

    /// A record was missing in the old file: its number means another record in the new file.
    @Test func recordMissingInTheOldFile_costsNoneOfTheNewOne() throws {
        let fixture = try Fixture()
        addFixes(5, to: fixture.queue)
        fixture.destination.look = {
            try Self.replace(fixture.queue, older: 5)
            addFixes(3, to: fixture.queue)
            try fixture.queue.flushed()
            throw RecordMissingError(stream: .location, sequence: 2, why: "a test")
        }
        _ = fixture.sync.perform(.asked)
        #expect(try fixture.queue.losses().isEmpty)
        fixture.queue.close()
    }

    /// Damage of the old file must not quarantine the new one.
    @Test func errorOfTheOldFile_isNoneOfTheNewOne() throws {
        let fixture = try Fixture()
        addFixes(5, to: fixture.queue)
        fixture.destination.look = {
            try Self.replace(fixture.queue, older: 5)
            throw SQLiteError(code: 1, message: "no such column: mode", statement: "")
        }
        _ = fixture.sync.perform(.asked)
        try fixture.queue.flushed()
        #expect(fixture.queue.generation == 2)
        fixture.queue.close()
    }

    /// Damage that a sync finds is not an upload failure; the next one sends what can be read.
    @Test func damageThatIsFound_isNoFailedUpload() throws {
        let fixture = try Fixture()
        addFixes(5, to: fixture.queue)
        fixture.destination.look = { throw SQLiteError(code: 11, message: "a test", statement: "") }
        let found = fixture.sync.perform(.asked)
        #expect(found.left == nil)
        #expect(found.isSalvaging == true)
        #expect(fixture.board.state.value?.streams[.location]?.lastError == nil)
        try waitUntil("all of it is sent") { fixture.sync.perform(.asked).isDone }
        // May include the event of the salvage.
        #expect([5, 6].contains(fixture.destination.sent.values.joined().count))
        fixture.queue.close()
    }

    /// A sync is not reported done until the quarantined database has been inspected.
    @Test func databaseThatWasSetAside_isNotOverBeforeItIsRead() throws {
        let fixture = try Fixture(byHand: true)
        addFixes(5, to: fixture.queue)
        fixture.queue.turn()
        fixture.queue.reportDamage("a test", generation: fixture.queue.generation)
        fixture.queue.turn()
        #expect(fixture.sync.perform(.asked) == SyncResult(isSalvaging: true))
        while fixture.queue.turnMaintenance() {}
        #expect(fixture.sync.perform(.asked) == SyncResult(left: 0))
        // Includes the event of the salvage.
        #expect(fixture.destination.sent.values.joined().count == 6)
        fixture.queue.close()
    }

    /// A batch names its file by a number of the live database; the next one gives it to another
    /// file.
    @Test func batchOfAnOlderFile_isNeverMadeOfAnother() throws {
        let fixture = try Fixture()
        let queue = fixture.queue
        addFixes(10, to: queue)
        try queue.flushed()
        try Self.replace(queue, older: 10)
        let ids = try queue.reader(of: 1).ids(.location, 1...10)
        let own = try (1...10).map { try ids.id($0) }
        let range = try #require(queue.pending(.location))
        let batch = try #require(try queue.perform { try $0.freeze(range, through: 10) })
        addFixes(10, to: queue)
        try queue.flushed()
        let isOver = Locked(false)
        let subscription = fixture.board.subscribe { state in
            guard state.value?.streams[.location]?.inFlight == 10, !isOver.value else { return }
            isOver.update { $0 = true }
            try? Self.replace(queue, older: 20)
        }
        for _ in 0..<3 { _ = fixture.sync.perform(.asked) }
        #expect(isOver.value)
        #expect(fixture.destination.sent[batch.key] == own)
        #expect(Set(fixture.destination.sent.values.joined()).count >= 20)
        queue.close()
        withExtendedLifetime(subscription) {}
    }
}
