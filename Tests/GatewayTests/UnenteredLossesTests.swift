// What a gateway could not enter at its end, entered by the next.
import Foundation
import Host
import Queue
import SQLite
import Streams
import Support
import Testing

@testable import Gateway

@Suite struct UnenteredLossesTests {
    @Test func recordsInFlight_areInTheLedgerAfterTheNextStart() throws {
        let bench = try GatewayBench(change: { configuration in
            let line = "\(Stream.events.number) 0 1 0 0 1000000000 1000"
            let text = "\(Gateway.currentBootID())\n\(line)\n"
            let folder = configuration.runtimeDirectory
            try? FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            try? text.write(
                toFile: folder + "/records-in-flight",
                atomically: true,
                encoding: .utf8
            )
        })
        try waitUntil("a start") { bench.readies.value >= 1 }
        bench.stop()
        let queue = try Connection(
            path: bench.folder + "/state/queue.sqlite",
            access: .readOnly
        )
        let lost = "SELECT sum(records) FROM losses WHERE kind='dropped' AND stream=?"
        #expect(try queue.integer(lost, Int64(Stream.events.number)) == 1)
    }

    /// The disk is slow, and does not hang: the writer has been heard of just now.
    @Test func recordsOfAnEndThatWaitsNoLonger_areKept_thoughNoDiskHangs() throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(path: folder.path + "/q", bootID: "b", appVersion: "t")
        settings.isTurnedByHand = true
        let queue = try Queue(settings: settings)
        let clock = SystemClock()
        let unwritten = UnwrittenRecords(
            queue,
            clock: clock,
            directory: folder.path,
            bootID: "b"
        )
        func kept() -> [Int64] {
            UnenteredLosses.inFlight(in: folder.path, bootID: "b", queue.streams)
                .map(\.records.count)
        }
        for _ in 0..<3 {
            queue.accept(Event(.started, source: "gateway", stamp: clock.stamp()))
        }
        unwritten.look()
        #expect(kept().isEmpty)
        unwritten.keepAll()
        #expect(kept() == [3])
        // What the end of the queue returned says it all.
        unwritten.keep(queue.close())
        #expect(kept().isEmpty)
        unwritten.keepAll()
        #expect(kept().isEmpty)
    }
}
