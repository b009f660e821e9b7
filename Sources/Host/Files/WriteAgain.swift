// Rewrites a file whose last fsync may have failed.
import CLinux
import Glibc

/// Rewrites a file with its own content and fsyncs it; does nothing without a file.
///
/// A failed fsync is reported once: the pages then read correctly and count as written, but are
/// lost at a power cut (fsync(2), Linux since 4.13). A full disk does not throw.
package func writeAgain(_ path: String) throws(SystemError) {
    let number = open(path, O_RDWR | O_CLOEXEC)
    guard number >= 0 else {
        if errno == ENOENT { return }
        throw .last("open", on: path)
    }
    let file = Descriptor(owning: number)
    var offset: Int64 = 0
    do throws(SystemError) {
        while true {
            let block = try readBytes(1 << 16, of: file.number, at: offset, path)
            guard !block.isEmpty else { break }
            try writeBytes(block, to: file.number, at: offset, path)
            offset += Int64(block.count)
        }
    } catch {
        if error.code == ENOSPC { return }
        throw error
    }
    try file.sync(path)
}
