// What a gateway could not enter at its end, entered by the next.
import Foundation
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
}
