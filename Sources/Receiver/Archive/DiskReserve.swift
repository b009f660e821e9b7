// Room that a start finds, however full the disk is.
import Glibc
import Host

/// A file that is deleted before the databases are opened, for that takes some room.
///
/// On a full disk, too, a receiver is to start, show its page, alert, and tell gateways to keep what they have.
struct DiskReserve {
    /// Bytes.
    ///
    /// The index of SQLite's journal takes 32 KiB for each database (sqlite.org/walformat.html, section 2), tables that
    /// were not there before as much again.
    private static let size = 512 << 10
    /// It is made where so much is free: it would take away just what it has given.
    private static let least = 16 << 20

    private let directory: String
    private(set) var isThere = false

    private var path: String { "\(directory)/.receiver.reserve" }

    /// Lets go of what an earlier process has kept.
    init(releasedIn directory: String) {
        self.directory = directory
        unlink(path)
    }

    /// Makes it where it is not there and there is room enough.
    mutating func make() {
        guard !isThere, FileSpace.free(directory) ?? 0 >= Self.least else { return }
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        isThere = posix_fallocate(file, 0, Self.size) == 0
    }
}
