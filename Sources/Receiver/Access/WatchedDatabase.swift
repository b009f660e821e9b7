// A small database that commands change while a receiver has it open.
import CLinux
import FoundationEssentials
import Glibc
import SQLite
import Synchronization

/// What stands in it is kept in memory, and read again when another process has changed it.
///
/// `Known`: what is kept.
final class WatchedDatabase<Known: Sendable>: @unchecked Sendable {
    // Unchecked because the database is used under `lock`, and the one that is watched under `memory`'s.
    private let database: Connection
    private let watched: Connection
    private let lock = Mutex(())
    /// Not held while a disk is waited for; `change`: what stood in the file when it was read.
    private let memory: Mutex<(known: Known, change: [UInt8])>
    private let read: @Sendable (borrowing Connection) throws -> Known

    /// Opens it, or makes it.
    ///
    /// `tables`: statements that change nothing where it is there already.
    init(
        _ path: String,
        in directory: String,
        tables: String,
        read: @escaping @Sendable (borrowing Connection) throws -> Known
    ) throws {
        try Self.make(path, in: directory)
        database = try Connection(path: path, access: .readWrite)
        // A journal that ends with each change: files of a second user's would be in the receiver's way.
        try database.execute("PRAGMA journal_mode=DELETE")
        try database.execute("PRAGMA synchronous=FULL")
        try database.execute(tables)
        watched = try Connection(path: path, access: .readOnly)
        self.read = read
        // No count that a file has: what changes from now on is read by the first request.
        memory = Mutex((try read(database), []))
    }

    /// For its owner alone; one that root makes belongs to the directory's owner.
    private static func make(_ path: String, in directory: String) throws {
        try FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true
        )
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw Trouble("open", path) }
        defer { close(number) }
        var folder = stat()
        if geteuid() == 0, stat(directory, &folder) == 0 {
            _ = fchown(number, folder.st_uid, folder.st_gid)
        }
    }

    /// What was read last; waits for nobody.
    var known: Known { memory.withLock { $0.known } }

    /// Asks it; other threads wait.
    func ask<Value: Sendable>(_ body: (borrowing Connection) throws -> Value) throws -> Value {
        try lock.withLock { _ in try body(database) }
    }

    /// Changes it in a transaction: on the disk when this returns, undone when it throws.
    func change<Value: Sendable>(_ body: (borrowing Connection) throws -> Value) throws -> Value {
        try lock.withLock { _ in
            try database.execute("BEGIN IMMEDIATE")
            let value: Value
            do {
                value = try body(database)
                try database.execute("COMMIT")
            } catch {
                if !database.isAutocommit { try? database.execute("ROLLBACK") }
                throw error
            }
            // It is done whatever becomes of this; the next request reads again.
            try? load()
            return value
        }
    }

    // MARK: What other processes change

    /// Reads anew what another process has changed; false where the file is just being changed by one.
    ///
    /// On a thread that may not wait for a disk: `waits` is false.
    func refresh(waits: Bool) throws -> Bool {
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

    /// A count in the file's header that each transaction moves (sqlite.org/fileformat2.html, 1.3.7).
    private func changeCount() -> [UInt8] {
        var count = [UInt8](repeating: 0, count: 4)
        return watched.readFile(at: 24, into: &count) ? count : []
    }

    private func load() throws {
        // Before the rows: what changes after it is read again.
        let change = memory.withLock { _ in changeCount() }
        let known = try read(database)
        memory.withLock { $0 = (known, change) }
    }
}
