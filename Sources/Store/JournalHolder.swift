// Who keeps the journal from being emptied: another process that reads the database and does not stop.
internal import CLinux
internal import Glibc

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
        return find(inode: UInt64(figures.st_ino), in: text("/proc/locks", limit: 1 << 16))
    }

    /// `1: POSIX  ADVISORY  READ 1234 fe:01:131 123 123` (proc_locks(5)).
    static func find(inode: UInt64, in locks: String) -> JournalHolder? {
        for line in locks.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 8, words[1] == "POSIX", let pid = Int(words[4]), pid != getpid(),
                let mark = Int(words[6]), marks.contains(mark),
                words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == inode
            else { continue }
            let name = text("/proc/\(pid)/comm", limit: 64).filter { !$0.isNewline }
            return JournalHolder(pid: pid, name: name.isEmpty ? "a process" : name)
        }
        return nil
    }

    private static func text(_ path: String, limit: Int) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = fread(&bytes, 1, limit, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
