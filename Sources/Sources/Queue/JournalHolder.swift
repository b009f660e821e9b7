// Who keeps the journal from being emptied: another process that reads the database and does not stop.
internal import SQLite
internal import Streams
internal import CLinux
internal import Glibc
internal import Host

/// A process that holds a read mark on the journal.
struct JournalHolder: Equatable {
    var pid: Int
    var name: String

    /// The read marks of the journal's index: bytes 123 to 127 (sqlite.org/walformat.html, section 2.2.1).
    private static let marks = 123...127

    /// Looks in /proc/locks, because opening and closing the file itself would drop SQLite's own locks
    /// (fcntl(2), "record locks").
    static func find(database: String) -> JournalHolder? {
        var figures = stat()
        guard stat(database + "-shm", &figures) == 0 else { return nil }
        return find(
            inode: UInt64(figures.st_ino),
            in: SmallText.read("/proc/locks", limit: 1 << 16) ?? ""
        )
    }

    /// `1: POSIX  ADVISORY  READ 1234 fe:01:131 123 123` (proc_locks(5)).
    static func find(inode: UInt64, in locks: String) -> JournalHolder? {
        for line in locks.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 8, words[1] == "POSIX", let pid = Int(words[4]), pid != getpid(),
                let mark = Int(words[6]), marks.contains(mark),
                words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == inode
            else { continue }
            let name = SmallText.read("/proc/\(pid)/comm")?.filter { !$0.isNewline } ?? ""
            return JournalHolder(pid: pid, name: name.isEmpty ? "a process" : name)
        }
        return nil
    }
}
