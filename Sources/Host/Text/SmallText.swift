// Reads small files as text.
import Glibc

/// Reads files of a few kilobytes, such as those of /proc, and snapshots.
package enum SmallText {
    /// Returns the first `limit` bytes of a file as text; nil if it cannot be read.
    ///
    /// Pass `followsLink: false` in a directory of another user, who may have put a link or a pipe
    /// there.
    package static func read(
        _ path: String,
        limit: Int = 16 << 10,
        followsLink: Bool = true
    ) -> String? {
        let file = try? SmallFile.read(path, limit: limit, followsLink: followsLink)
        return file.map { String(decoding: $0.bytes.prefix(limit), as: UTF8.self) }
    }
}
