// Who holds the database, or its journal, and keeps the queue from it: another process.
internal import CLinux
internal import Glibc
internal import Host
internal import SQLite

/// A process that holds a lock on the database.
struct DatabaseHolder: Equatable {
    var pid: Int
    var name: String

    /// The read marks of the journal's index: bytes 123 to 127 (sqlite.org/walformat.html, section 2.2.1).
    private static let readMarks = 123...127

    /// A process that reads and does not stop, so that the journal cannot be emptied.
    ///
    /// Looks in /proc/locks, because opening and closing the file itself would drop SQLite's own locks
    /// (fcntl(2), "record locks").
    static func reader(of database: String) -> DatabaseHolder? {
        find(inodes: inodes(database + "-shm"), in: locks) {
            $0.first.map(readMarks.contains) ?? false
        }
    }

    /// A process that lets nobody else write, or not even read.
    static func writer(of database: String) -> DatabaseHolder? {
        find(inodes: inodes(database, database + "-shm"), in: locks, where: \.isExclusive)
    }

    private static var locks: String { SmallText.read("/proc/locks", limit: 1 << 16) ?? "" }

    private static func inodes(_ paths: String...) -> [UInt64] {
        paths.compactMap { path in
            var figures = stat()
            return stat(path, &figures) == 0 ? UInt64(figures.st_ino) : nil
        }
    }

    /// A line of /proc/locks.
    struct Lock {
        var isExclusive: Bool
        /// The first byte that is locked.
        var first: Int?
    }

    /// `1: POSIX  ADVISORY  READ 1234 fe:01:131 123 123` (proc_locks(5)).
    static func find(
        inodes: [UInt64],
        in locks: String,
        where isWanted: (Lock) -> Bool
    ) -> DatabaseHolder? {
        for line in locks.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 8, words[1] == "POSIX", let pid = Int(words[4]), pid != getpid(),
                let inode = words[5].split(separator: ":").last.flatMap({ UInt64($0) }),
                inodes.contains(inode),
                isWanted(Lock(isExclusive: words[3] == "WRITE", first: Int(words[6])))
            else { continue }
            let name = SmallText.read("/proc/\(pid)/comm")?.filter { !$0.isNewline } ?? ""
            return DatabaseHolder(pid: pid, name: name.isEmpty ? "a process" : name)
        }
        return nil
    }
}

/// Says who holds a database that cannot be used for that reason alone; nil for any other error.
package func databaseHolder(of path: String, after error: any Error) -> String? {
    guard let error = error as? SQLiteError, error.isBusy else { return nil }
    let holder = DatabaseHolder.writer(of: path).map { ": \($0.name) (process \($0.pid)), end it" }
    return "another program holds the database\(holder ?? "")"
}
