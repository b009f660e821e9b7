// A file whose last sync may have failed, brought to the disk once more.
import CLinux
import Glibc

/// Writes what a file reads as to the disk once more, and waits until it is there; nothing without a file.
///
/// A sync that failed tells it once: its pages read well, count as written, and are gone at a power cut
/// (fsync(2), Linux since 4.13). A full disk is no reason to throw.
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
