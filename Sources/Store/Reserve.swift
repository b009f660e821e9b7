// A file that takes up space until it is needed: deleting writes to the journal first.
internal import Glibc

/// The reserve beside the database.
///
/// On a full file system not even a deletion works, because it is written to the journal before it frees
/// anything. Giving up this file makes that possible.
struct Reserve {
    static let bytes: Int64 = 2 << 20

    private let path: String
    private var isKept = false

    init(database: String) {
        path = database + "-reserve"
        isKept = FileSpace.size(path) >= Self.bytes
    }

    /// Makes the file if there is room for much more than it.
    mutating func keep(free: Int64) {
        guard !isKept, free > 4 * Self.bytes else { return }
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640)
        guard file >= 0 else { return }
        defer { close(file) }
        isKept = posix_fallocate(file, 0, Int(Self.bytes)) == 0
        if !isKept { unlink(path) }
    }

    /// Gives the space back; false when there is none to give.
    mutating func release() -> Bool {
        guard isKept else { return false }
        isKept = false
        return unlink(path) == 0
    }
}
