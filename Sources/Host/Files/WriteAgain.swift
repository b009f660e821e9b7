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
    var (block, place) = ([UInt8](repeating: 0, count: 1 << 16), 0)
    while true {
        let got = pread(file.number, &block, block.count, place)
        guard got != 0 else { break }
        guard got > 0, pwrite(file.number, block, got, place) == got else {
            if errno == ENOSPC { return }
            throw .last("write", on: path)
        }
        place += got
    }
    try file.sync(path)
}
