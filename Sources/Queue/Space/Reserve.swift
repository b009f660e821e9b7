// A file that takes up space until it is needed: deleting writes to the journal first.

/// The reserve beside the database.
///
/// On a full file system not even a deletion works, because it is written to the journal before it frees
/// anything. Giving up this file makes that possible.
package struct Reserve {
    package static let usualBytes: Int64 = 2 << 20

    private let disk: any QueueDisk
    private let path: String
    private let bytes: Int64
    private var isKept = false

    /// `bytes`: less on a disk that is small by itself.
    init(database: String, on disk: any QueueDisk, bytes: Int64) {
        self.disk = disk
        self.bytes = bytes
        path = database + "-reserve"
        isKept = disk.size(path) >= bytes
    }

    /// Makes the file if there is room for much more than it.
    mutating func keep(free: Int64) {
        guard !isKept, free > 4 * bytes else { return }
        isKept = disk.reserve(path, bytes: bytes)
    }

    /// Gives the space back; false when there is none to give.
    mutating func release() -> Bool {
        guard isKept else { return false }
        isKept = false
        return disk.remove(path)
    }
}
