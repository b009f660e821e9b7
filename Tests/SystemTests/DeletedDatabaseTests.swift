// The database of the running gateway is deleted.
import Foundation
import Support
import Testing

@Suite struct DeletedDatabaseTests {
    @Test func deletedDatabase_isReplaced_withoutAcknowledgedLoss() throws {
        let device = try Device("[stream.weather]")
        let database = device.folder + "/state/queue.sqlite"
        func put(_ count: Int) throws {
            let lines = String(repeating: "{\"n\": 1}\n", count: count)
            #expect(try device.run("put", "weather", input: lines).status == 0)
        }
        func pending() throws -> Int? { try device.stream("weather")["pending"] as? Int }

        try device.start()
        try put(3)
        for suffix in ["", "-wal", "-shm"] { unlink(database + suffix) }
        // Answered, but stored in a file that can no longer be opened.
        try put(2)
        try waitUntil("the health timer sees it") { access(database, F_OK) == 0 }
        try put(1)
        try waitUntil("what was deleted is read") { try pending() == 6 }
        device.killDaemon()
        // A quarantined database is critical, so `status` does not report a healthy state.
        try device.launch()
        try waitUntil("all of it is still there") { try pending() == 6 }
        #expect(try device.stop() == 0)
    }
}
