// The state that `status` keeps over a restart.
import Foundation
import Host
import Queue
import QueueSupport
import Setup
import Support
import Testing

import Daemon
import Status

@Suite struct PastTests {
    /// The disk fails at the start, and is back while the program runs.
    @Test func totals_outliveAStart_thatHadNoDatabaseAtFirst() throws {
        func queue(_ state: String) throws -> Queue {
            try Queue(at: state + "/queue.sqlite", bootID: "before")
        }
        let fixture = try GatewayFixture(change: { configuration in
            let state = configuration.stateDirectory
            try? FileManager.default.createDirectory(
                atPath: state,
                withIntermediateDirectories: true
            )
            var past = PersistedState()
            past.totals = ["E001": 7]
            let before = try? queue(state)
            before?.remember(PersistedState.memo, past.text)
            _ = before?.close()
            // A folder in place of the file can be neither read nor replaced.
            try? FileManager.default.moveItem(
                atPath: state + "/queue.sqlite",
                toPath: state + "/away"
            )
            mkdir(state + "/queue.sqlite", 0o755)
        })
        try waitUntil("a start") { fixture.readies.value >= 1 }
        #expect(fixture.fiveTicksPass())
        let state = fixture.folder + "/state"
        rmdir(state + "/queue.sqlite")
        rename(state + "/away", state + "/queue.sqlite")
        try waitUntil("the database") {
            let storage = fixture.status["storage"] as? [String: Any]
            return storage?["state"] as? String == "ok"
        }
        fixture.stop()
        let after = try queue(state)
        defer { after.close() }
        #expect(PersistedState(text: after.remembered(PersistedState.memo)).totals["E001"] == 7)
    }
}
