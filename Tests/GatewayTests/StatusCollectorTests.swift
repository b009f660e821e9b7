// What the status is made of.
import Board
import Host
import Queue
import Streams
import Support
import Testing
import Upload

@testable import Gateway

@Suite struct StatusCollectorTests {
    private let folder = TemporaryFolder()
    private let board = GatewayBoard()

    private func queue() throws -> Queue {
        try Queue(settings: QueueSettings(path: folder.path + "/q", bootID: "b", appVersion: "t"))
    }

    private func collector(_ queue: Queue) -> StatusCollector {
        StatusCollector(
            board: board,
            queue: queue,
            clock: SystemClock(),
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: Configuration(),
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
        // As the supervisor does it.
        board.sources[.audio]?.failed(Failure("no sign of life for 45 s"))
        board.resting.update { $0[.beacons] = "disabled in the configuration" }
        let rates = collector(queue).report().sources.mapValues(\.ratePerS)
        #expect(rates == ["beacons": 0, "audio": 0, "location": 8.9])
    }
}
