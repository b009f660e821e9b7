// Space that lets the receiver start on a full disk.
import Glibc
import Host

/// A file that is deleted before the databases are opened, which need some space.
///
/// Even on a full disk the receiver has to start, show its page, send alerts, and refuse batches,
/// so that gateways keep their records.
struct DiskReserve {
    /// Bytes.
    ///
    /// A WAL index takes 32 KiB per database (sqlite.org/walformat.html, section 2), new tables
    /// about the same again.
    private static let size = 512 << 10
    /// Bytes that must be free before it is created; otherwise it would take the space it just
    /// freed.
    private static let least = 16 << 20

    private let directory: String
    private(set) var isThere = false

    private var path: String { "\(directory)/.receiver.reserve" }

    /// Deletes the reserve of an earlier process.
    init(releasedIn directory: String) {
        self.directory = directory
        unlink(path)
    }

    /// Creates it if it does not exist and there is enough space.
    mutating func make() {
        guard !isThere, FileSpace.free(directory) ?? 0 >= Self.least else { return }
        guard let file = try? Descriptor(opening: path, O_WRONLY | O_CREAT, mode: 0o600) else {
            return
        }
        isThere = posix_fallocate(file.number, 0, Self.size) == 0
    }
}
