// A small database that commands change while a receiver has it open.
import CLinux
import FoundationEssentials
import Glibc
import Host
package import SQLite
import Synchronization

/// Caches a database's content in memory, and reloads it when another process has changed it.
///
/// `Known` is the cached content. Thread-safe.
package final class WatchedDatabase<Known: Sendable>: @unchecked Sendable {
    // Unchecked because `database` is used under `lock`, and `watched` under `memory`.
    private let database: Connection
    private let watched: Connection
    private let lock = Mutex(())
    /// Held only briefly, never during a query or commit; `change` is the file's change counter
    /// when it was read.
    private let memory: Mutex<(known: Known, change: [UInt8])>
    private let read: @Sendable (borrowing Connection) throws -> Known

    /// Opens or creates the database.
    ///
    /// `tables`: statements that do nothing if the tables exist.
    package init(
        _ path: String,
        in directory: String,
        tables: String,
        read: @escaping @Sendable (borrowing Connection) throws -> Known
    ) throws {
        try Self.make(path, in: directory)
        database = try Connection(path: path, access: .readWrite)
        // A rollback journal, deleted after each change: WAL files of another user would block the
        // receiver.
        try database.execute("PRAGMA journal_mode=DELETE")
        try database.execute("PRAGMA synchronous=FULL")
        try database.execute(tables)
        watched = try Connection(path: path, access: .readOnly)
        self.read = read
        // The empty counter never matches, so that the first request reloads later changes.
        memory = Mutex((try read(database), []))
    }

    /// Creates the file, readable by its owner only; root gives it to the directory's owner.
    private static func make(_ path: String, in directory: String) throws {
        try FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true
        )
        let file = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        var folder = stat()
        if geteuid() == 0, stat(directory, &folder) == 0 {
            _ = fchown(file.number, folder.st_uid, folder.st_gid)
        }
    }

    /// The content as it was last read; never blocks on the disk.
    package var known: Known { memory.withLock { $0.known } }

    /// Runs a query under the lock.
    package func ask<Value: Sendable>(_ body: (borrowing Connection) throws -> Value) throws
        -> Value
    {
        try lock.withLock { _ in try body(database) }
    }

    /// Changes it in one transaction: on the disk when this returns, rolled back when it throws.
    package func change<Value: Sendable>(_ body: (borrowing Connection) throws -> Value) throws
        -> Value
    {
        try lock.withLock { _ in
            let value = try database.transaction(body)
            // The change is committed even if this fails; the next request reloads.
            try? load()
            return value
        }
    }

    // MARK: Changes by other processes

    /// Reloads what another process has changed; false if that process is still writing.
    ///
    /// The server's thread must not wait for the disk: there `waits` is false.
    package func refresh(waits: Bool) throws -> Bool {
        guard memory.withLock({ $0.change != changeCount() }) else { return true }
        if waits {
            try lock.withLock { _ in try load() }
            return true
        }
        return try lock.withLockIfAvailable { _ in
            database.waitForOthers(milliseconds: 0)
            defer { database.waitForOthers(milliseconds: 5000) }
            do {
                try load()
                return true
            } catch let error as SQLiteError where error.isBusy {
                return false
            }
        } ?? false
    }

    /// Returns the file change counter in the header, which each transaction increments
    /// (sqlite.org/fileformat2.html, 1.3.7).
    private func changeCount() -> [UInt8] {
        var count = [UInt8](repeating: 0, count: 4)
        return watched.readFile(at: 24, into: &count) ? count : []
    }

    private func load() throws {
        // Read before the rows, so that a later change causes another reload.
        let change = memory.withLock { _ in changeCount() }
        let known = try read(database)
        memory.withLock { $0 = (known, change) }
    }
}
