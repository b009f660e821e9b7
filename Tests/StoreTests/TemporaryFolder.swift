import Foundation
import Host
import Store

/// A folder of a test's own, gone with it.
final class TemporaryFolder {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "waypost-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    var database: String { path + "/queue.sqlite" }

    func queue(
        commitInterval: Duration = .seconds(1),
        bootID: String = "boot",
        clock: any HostClock = SystemClock()
    ) throws -> Queue {
        try Queue(
            settings: QueueSettings(
                path: database,
                bootID: bootID,
                commitInterval: commitInterval,
                clock: clock,
                appVersion: "test"
            )
        )
    }
}

/// What was waited for did not happen.
struct NeverHappened: Error {
    var what: String
}

/// Waits for a condition, not for a time.
func waitUntil(_ what: String, limit: Duration = .seconds(30), _ condition: () throws -> Bool)
    throws
{
    let clock = SystemClock()
    let deadline = clock.now() + limit
    while try !condition() {
        guard clock.now() < deadline else { throw NeverHappened(what: what) }
        usleep(2000)
    }
}
