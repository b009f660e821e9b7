// A file that reserves space, because deleting records first writes to the WAL.

/// The reserve file next to the database.
///
/// On a full file system not even a deletion works, because it is written to the WAL before it
/// frees anything. Removing this file makes room for that.
package struct Reserve {
    package static let usualBytes: Int64 = 2 << 20

    private let disk: any QueueDisk
    private let path: String
    private let bytes: Int64
    private var isKept = false

    /// `bytes` is smaller on a small disk.
    init(database: String, on disk: any QueueDisk, bytes: Int64) {
        self.disk = disk
        self.bytes = bytes
        path = database + "-reserve"
        isKept = disk.size(path) >= bytes
    }

    /// Creates the file if there is room for much more.
    mutating func keep(free: Int64) {
        guard !isKept, free > 4 * bytes else { return }
        isKept = disk.reserve(path, bytes: bytes)
    }

    /// Deletes the file to free its space; returns false if there is none.
    mutating func release() -> Bool {
        guard isKept else { return false }
        isKept = false
        return disk.remove(path)
    }
}
