// Queues for tests, on real SQLite files.
import Foundation
package import Host
package import Queue
package import Support

extension QueueSettings {
    /// Settings for a test: only the path has no default.
    package init(
        at path: String,
        bootID: String = "boot",
        commitInterval: Duration = .seconds(1),
        clock: any HostClock = SystemClock()
    ) {
        self.init(
            path: path,
            bootID: bootID,
            commitInterval: commitInterval,
            clock: clock,
            appVersion: "test"
        )
    }
}

extension Queue {
    /// Opens a queue for a test; `change` edits its settings first.
    package convenience init(
        at path: String,
        bootID: String = "boot",
        commitInterval: Duration = .seconds(1),
        clock: any HostClock = SystemClock(),
        _ change: (inout QueueSettings) -> Void = { _ in }
    ) throws {
        var settings = QueueSettings(
            at: path,
            bootID: bootID,
            commitInterval: commitInterval,
            clock: clock
        )
        change(&settings)
        try self.init(settings: settings)
    }

    /// Has the database quarantined, and waits until all salvages are over.
    package func damage() throws {
        let before = generation
        reportDamage("for the test", generation: before)
        try waitUntil("a new database") { self.generation > before }
        try waitUntilSalvaged()
    }

    package func waitUntilSalvaged() throws {
        try waitUntil("the salvage is over") {
            let known = try self.perform { try $0.olderDatabases() }
            return known.count == self.setAside.count && known.allSatisfy { $0.state != .adopted }
        }
    }
}

extension TemporaryFolder {
    /// The path of the queue's database.
    package var database: String { path + "/queue.sqlite" }

    /// Opens a queue in this folder.
    package func queue(
        commitInterval: Duration = .seconds(1),
        bootID: String = "boot",
        clock: any HostClock = SystemClock(),
        limits: StorageLimits = StorageLimits(),
        freeSpace: (@Sendable (String) -> Int64)? = nil
    ) throws -> Queue {
        try Queue(
            at: database,
            bootID: bootID,
            commitInterval: commitInterval,
            clock: clock
        ) {
            $0.limits = limits
            $0.freeSpace = freeSpace
        }
    }
}
