// The sources of the status report.
import Configuration
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing

@testable import Daemon
import Setup
@testable import Status
@testable import Upload

@Suite struct StatusCollectorTests {
    private let folder = TemporaryFolder()
    private let board = GatewayBoard()

    private func queue() throws -> Queue {
        try Queue(at: folder.path + "/q")
    }

    private func collector(
        _ queue: Queue,
        clock: any HostClock = SystemClock(),
        change: (inout Configuration) -> Void = { _ in }
    ) -> StatusCollector {
        var configuration = Configuration()
        change(&configuration)
        return StatusCollector(
            board: board,
            queue: queue,
            clock: clock,
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: configuration,
            deviceID: "d",
            version: "1",
            bootID: "b",
            started: SystemClock().now(),
            nextSync: { nil }
        )
    }

    @Test func sourceThatDoesNotWork_hasNoRate() throws {
        let queue = try queue()
        defer { queue.close() }
        var working = SourceReport(device: "d")
        working.ratePerSecond = 8.9
        for publisher in board.sources.values { publisher.loaded(working) }
        // As the supervisor does.
        board.sources[.audio]?.failed(Failure("no heartbeat for 45 s"))
        board.resting.update { $0[.beacons] = "disabled in the configuration" }
        let rates = collector(queue).report().sources.mapValues(\.ratePerS)
        #expect(rates == ["beacons": 0, "audio": 0, "location": 8.9])
    }

    /// A kill loses the source's counts since the last tick, but not its records.
    @Test func recordsOfASource_areNoFewerThanItsStreamHas() throws {
        let queue = try queue()
        defer { queue.close() }
        for _ in 0..<5 {
            let stamp = SystemClock().stamp()
            queue.accept(Fix(stamp: stamp, mode: .twoDimensional, latitude: 1, longitude: 2))
        }
        try queue.flushed()
        let report = collector(queue).report()
        #expect(report.sources["location"]?.records == 5)
        #expect(report.streams["linux_gpsd_location"]?.pending == 5)
    }

    /// The system's clock, ten days ahead.
    private struct LaterClock: HostClock {
        private let clock = SystemClock()

        func now() -> BootInstant { clock.now() + .days(10) }
        func wall() -> WallTime { clock.wall() + .days(10) }
    }

    @Test func room_isGivenAtTheRateOfWhatIsStored() throws {
        let clock = LaterClock()
        let queue = try Queue(at: folder.path + "/queue.sqlite", clock: clock)
        defer { queue.close() }
        func room() -> StatusReport.Storage {
            let collector = collector(queue, clock: clock) {
                $0.stateDirectory = folder.path
                $0.storage.maxSize = 100_000
                $0.storage.limits.criticalFree = 0
            }
            return collector.report(collector.gather()).storage
        }
        let first = SystemClock().stamp()
        #expect(room().roomDays == nil)
        queue.accept(Fix(stamp: first, mode: .twoDimensional, latitude: 1, longitude: 2))
        try queue.flushed()
        // Nobody knows how long ten days by a wrong clock are.
        #expect(room().roomDays == nil)
        try queue.perform { try $0.recordClock(clock.stamp(), synced: true) }
        // One of ten days ago, three since: each stream has its own rate, whatever came before.
        for _ in 0..<3 {
            let fix = Fix(stamp: clock.stamp(), mode: .twoDimensional, latitude: 1, longitude: 2)
            queue.accept(fix)
        }
        queue.accept(Event(.sourceLost, source: "sim", detail: [], stamp: clock.stamp()))
        try queue.flushed()
        let fixes = queue.statistics().first { $0.stream == .location }
        let pending = queue.statistics().reduce(0) { $0 + $1.pendingBytes }
        let daily = Double(fixes?.pendingBytes ?? 0) / 10
        let room = try #require(room().roomDays)
        #expect(abs(room - min(3650, (98_000 - Double(pending)) / daily)) < 1)
        #expect(room > 100)
    }

    /// The last record of a stream was refused and dropped: the status must not stay degraded.
    @Test func streamOfWhichNothingWaits_failsNoMore() throws {
        let queue = try queue()
        defer { queue.close() }
        var upload = UploadReport()
        upload.streams[.events] = StreamUpload()
        let failure = TimedFailure(failure: Failure("refused"), at: SystemClock().stamp())
        upload.streams[.events]?.lastError = failure
        board.upload.loaded(upload)
        let settled = collector(queue).report()
        #expect(settled.streams["waypost_events"]?.lastError?.message == "refused")
        #expect(settled.state == .healthy)
        queue.accept(Event(.started, source: "test", stamp: SystemClock().stamp()))
        try queue.flushed()
        #expect(collector(queue).report().reasons == ["uploads failing: refused"])
    }

    /// Prometheus rejects the whole file if a metric appears twice.
    @Test func lossThatIsNotEnteredYet_isAddedToThoseThatAre() throws {
        let queue = try queue()
        defer { queue.close() }
        let start = SystemClock().stamp()
        queue.record(Loss(.missed, .beacons, records: 3, from: start, to: start))
        try queue.flushed()
        let collector = collector(queue)
        let stored = collector.gather()
        try queue.perform { _ in
            let later = start.advanced(by: .seconds(60))
            queue.record(Loss(.missed, .beacons, records: 4, from: start, to: later))
            let report = collector.report(stored)
            #expect(report.losses.map(\.records) == [7])
            #expect(report.losses.first?.from == start.wall)
            let end = try #require(report.losses.first?.to)
            #expect(end > start.advanced(by: .seconds(59)).wall)
        }
    }

    /// `[stream.air]` became `[stream.wind]` while records were pending, and kept its wire name.
    @Test func streamsOfOneNameOnTheWire_areCountedTogether() throws {
        let queue = try queue()
        defer { queue.close() }
        let start = SystemClock().stamp()
        for (name, records) in [("air", 3), ("wind", 2)] {
            queue.declare([DeclaredStream(name: name, wire: "site_air")])
            let record = UserRecord(stream: name, stamp: start, members: [])
            queue.put(Array(repeating: record, count: records)) { _ in }
            let stream = try #require(try queue.flushed().streams[name: name]?.stream)
            queue.record(Loss(.overrun, stream, records: Int64(records), from: start, to: start))
        }
        try queue.flushed()
        var collector = collector(queue)
        var wind = UserStream(name: "wind")
        wind.wire = "site_air"
        collector.configuration.userStreams = [wind]
        let report = collector.report()
        #expect(report.streams["site_air"]?.pending == 5)
        #expect(report.losses.filter { $0.stream == "site_air" }.map(\.records) == [5])
    }
}
