// Finds the other process that holds the database or its WAL.
import CLinux
import Glibc
import Host
import SQLite

/// A process that holds a lock on the database.
struct DatabaseHolder: Equatable {
    var pid: Int
    var name: String

    /// The locks on read marks in the WAL index: bytes 123 to 127 (sqlite.org/walformat.html,
    /// section 2.2.1).
    private static let readMarks = 123...127

    /// Returns a process with a long-running read, which keeps the WAL from being checkpointed.
    ///
    /// Reads /proc/locks, because opening and closing the file itself would drop SQLite's locks
    /// (fcntl(2), "record locks").
    static func reader(of database: String) -> DatabaseHolder? {
        likely(LockedFile.all(database + "-shm"), in: locks) {
            $0.first.map(readMarks.contains) ?? false
        }
    }

    /// Returns a process that certainly blocks all other writers, or even readers.
    static func writer(of database: String) -> DatabaseHolder? {
        find(LockedFile.all(database, database + "-shm"), in: locks, where: \.isExclusive)
    }

    /// Also returns a process that only probably does, to name it after SQLite reported busy.
    fileprivate static func likelyWriter(of database: String) -> DatabaseHolder? {
        likely(LockedFile.all(database, database + "-shm"), in: locks, where: \.isExclusive)
    }

    private static var locks: String { SmallText.read("/proc/locks", limit: 1 << 16) ?? "" }

    /// A line of /proc/locks.
    struct Lock {
        var isExclusive: Bool
        /// The first locked byte.
        var first: Int?
    }

    /// Returns `find`'s result, or a file with the same inode on a diskless file system.
    static func likely(
        _ files: [LockedFile],
        in locks: String,
        where isWanted: (Lock) -> Bool
    ) -> DatabaseHolder? {
        find(files, in: locks, where: isWanted)
            ?? find(files, in: locks, matching: { $0.isLikely($1) }, where: isWanted)
    }

    /// Parses lines such as `1: POSIX  ADVISORY  READ 1234 fe:01:131 123 123` (proc_locks(5)).
    static func find(
        _ files: [LockedFile],
        in locks: String,
        matching isSame: (LockedFile, LockedFile) -> Bool = (==),
        where isWanted: (Lock) -> Bool
    ) -> DatabaseHolder? {
        for line in locks.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 8, words[1] == "POSIX", let pid = Int(words[4]), pid != getpid(),
                let locked = LockedFile(words[5]),
                files.contains(where: { isSame($0, locked) }),
                isWanted(Lock(isExclusive: words[3] == "WRITE", first: Int(words[6])))
            else { continue }
            let name = SmallText.read("/proc/\(pid)/comm")?.filter { !$0.isNewline } ?? ""
            return DatabaseHolder(pid: pid, name: name.isEmpty ? "a process" : name)
        }
        return nil
    }
}

/// A file as /proc/locks names it: inode numbers are unique only per file system.
struct LockedFile: Equatable {
    var device: DeviceNumber
    var inode: UInt64

    /// Returns the files among the paths that `stat` can read.
    static func all(_ paths: String...) -> [LockedFile] {
        paths.compactMap { path in
            var figures = stat()
            guard stat(path, &figures) == 0 else { return nil }
            let device = DeviceNumber(UInt(figures.st_dev))
            return LockedFile(device: device, inode: UInt64(figures.st_ino))
        }
    }

    /// Compares inodes only: btrfs has a diskless device per subvolume, and another in /proc/locks.
    func isLikely(_ locked: LockedFile) -> Bool {
        inode == locked.inode && device.major == 0 && locked.device.major == 0
    }
}

extension LockedFile {
    /// Parses `fe:01:131`, with the device in hexadecimal; nil if malformed.
    init?(_ text: Substring) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let major = Int(parts[0], radix: 16),
            let minor = Int(parts[1], radix: 16), let inode = UInt64(parts[2])
        else { return nil }
        self.init(device: DeviceNumber(major: major, minor: minor), inode: inode)
    }
}

/// Returns a message naming the process that holds the database; nil for errors other than busy.
package func databaseHolder(of path: String, after error: any Error) -> String? {
    guard let error = error as? SQLiteError, error.isBusy else { return nil }
    let holder = DatabaseHolder.likelyWriter(of: path).map {
        ": \($0.name) (process \($0.pid)), end it"
    }
    return "another program holds the database\(holder ?? "")"
}
