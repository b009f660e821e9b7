// A stream declared in one place goes through everything without another edit.
import Configuration
import Foundation
import Host
import Records
import SQLite
import StatusBoard
import Support
import Testing
import Upload

import Daemon
@testable import Queue
import QueueSupport
import Setup
import Status

@Suite struct PlainStreamTests {
    @Test func example_isTheOneOfTheReadme() throws {
        let example = try String(
            contentsOfFile: Tree.path("Tests/GatewayTests/Tide.swift"),
            encoding: .utf8
        )
        let readme = try String(
            contentsOfFile: Tree.path("Sources/Records/README.md"),
            encoding: .utf8
        )
        #expect(readme.contains("```swift\n\(example)```"))
    }

    /// A server that stores accepted records.
    private final class Server: Destination {
        var verdict = Verdict.accepted
        private(set) var records: [[String: Any]] = []

        func begin() {}
        func networkChanged() {}

        func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) -> Int64 {
            min(range.last, range.first + 9)
        }

        func send(
            _ batch: Batch,
            from reader: Reader,
            mayCost: (Int64, Traffic) -> Bool,
            until stop: StopSignal
        ) throws -> Delivery {
            guard verdict == .accepted else { return Delivery(verdict) }
            let source = try RecordSource(reader: reader, clockMap: batch.clockMap)
            try source.forEach(batch.stream, batch.first...batch.last) { _, json in
                let record = try JSONSerialization.jsonObject(with: Data(json))
                records.append(try #require(record as? [String: Any]))
                return true
            }
            return Delivery(verdict)
        }

        var levels: [Double] { records.compactMap { $0["level_m"] as? Double } }
    }

    private final class Fixture {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let clock = ManualClock(
            testStart
        )
        let server = Server()
        let stop: StopSignal
        var queue: Queue

        init() throws {
            stop = try StopSignal()
            queue = try Self.open(temporary.path, clock)
        }

        deinit {
            queue.close()
        }

        static func open(_ folder: String, _ clock: ManualClock) throws -> Queue {
            try Queue(at: folder + "/queue.sqlite", clock: clock) {
                $0.moreStreams = [Tide.kind]
            }
        }

        func reopen() throws {
            queue.close()
            queue = try Self.open(folder, clock)
        }

        func add(_ levels: ClosedRange<Int>) throws {
            for level in levels {
                queue.accept(
                    Tide(stamp: clock.stamp(), level: Double(level) / 1000, gauge: "north")
                )
            }
            try queue.flushed()
        }

        @discardableResult func sync() -> SyncResult {
            Sync(
                settings: UploadSettings { $0.maxAttempts = 1 },
                queue: queue,
                destination: server,
                clock: clock,
                random: { 0.5 },
                board: Publisher(),
                stop: stop
            ).perform(.asked)
        }

        var figures: StreamStatistics? {
            queue.statistics().first { $0.stream == Tide.kind.stream }
        }
    }

    @Test func acceptUploadCrash() throws {
        let fixture = try Fixture()
        try fixture.add(1...25)
        #expect(fixture.figures?.pending == 25)
        #expect(fixture.sync().isDone)
        #expect(fixture.server.levels == (1...25).map { Double($0) / 1000 })
        let first = try #require(fixture.server.records.first)
        #expect(Set(first.keys) == ["id", "timestamp", "level_m", "gauge", "clock"])
        // As after kill -9: the files are copied without closing SQLite.
        try fixture.add(26...30)
        let copy = fixture.folder + "-killed"
        try FileManager.default.copyItem(atPath: fixture.folder, toPath: copy)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        let killed = try Fixture.open(copy, fixture.clock)
        #expect(killed.pending(Tide.kind.stream)?.first == 26)
        #expect(killed.pending(Tide.kind.stream)?.last == 30)
        killed.close()
    }

    @Test func refusalQuarantineDrop() throws {
        let fixture = try Fixture()
        try fixture.add(1...2)
        fixture.server.verdict = .refused(message: "no tides here")
        #expect(fixture.sync().quarantined == 2)
        #expect(fixture.figures?.quarantined == 2)
        fixture.server.verdict = .accepted
        try fixture.queue.perform { writer in
            let held = try writer.quarantined()
            _ = try writer.requeue(try #require(held.first))
            _ = try writer.drop(try #require(held.last))
        }
        fixture.sync()
        #expect(fixture.server.levels == [0.001])
        let losses = try fixture.queue.losses().filter { $0.stream == Tide.kind.stream }
        #expect(losses.map(\.kind) == [.discarded])
    }

    @Test func evictionRetention() throws {
        let fixture = try Fixture()
        try fixture.add(1...20)
        fixture.sync()
        fixture.clock.advance(by: .seconds(3600))
        fixture.queue.purge(retention: .seconds(60))
        let database = try Connection(path: fixture.folder + "/queue.sqlite", access: .readOnly)
        var rows: Int64 { get throws { try database.integer("SELECT count(*) FROM tide") ?? -1 } }
        try fixture.queue.flushed()
        while try rows > 0 { try fixture.queue.flushed() }
        try fixture.add(21...30)
        #expect(try fixture.queue.perform { try $0.evictPending() })
        #expect(try rows == 0)
        let losses = try fixture.queue.losses().filter { $0.stream == Tide.kind.stream }
        #expect(losses.map(\.kind) == [.evicted])
        #expect(losses.map(\.records) == [10])
    }

    @Test func salvageStatus() throws {
        let fixture = try Fixture()
        try fixture.add(1...30)
        fixture.queue.reportDamage("a reader", generation: fixture.queue.generation)
        try fixture.add(31...40)
        while fixture.queue.pending(Tide.kind.stream)?.database != 1 { try fixture.queue.flushed() }
        #expect(fixture.sync().isDone)
        #expect(fixture.server.levels == (1...40).map { Double($0) / 1000 })
        #expect(
            Set(fixture.server.records.compactMap { $0["id"] as? String }).count
                == fixture.server.records.count
        )
        var configuration = Configuration()
        configuration.stateDirectory = fixture.folder
        let report = StatusCollector(
            board: GatewayBoard(),
            queue: fixture.queue,
            clock: fixture.clock,
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: configuration,
            deviceID: "d",
            version: "1",
            bootID: "b",
            started: fixture.clock.now(),
            nextSync: { nil }
        ).report()
        #expect(report.streams["tide"]?.uploaded == 40)
        #expect(report.streams["tide"]?.pending == 0)
    }
}
