// Small files as text.
internal import Glibc

/// Files of a few kilobytes: those of /proc, and snapshots.
package enum SmallText {
    /// The first `limit` bytes of a file; nil where it cannot be read.
    package static func read(_ path: String, limit: Int = 16 << 10) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = fread(&bytes, 1, limit, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
