// The number that the kernel knows a device by.
import CLinux
import Glibc

/// Major and minor number (makedev(3)) of the file system that a file or folder is on.
package struct DeviceNumber: Sendable, Equatable {
    package let major: Int
    package let minor: Int

    /// Where sysfs has it, should it be a disk or a part of one.
    package var block: String { "/sys/dev/block/\(major):\(minor)" }

    package init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// As `stat` gives it.
    package init(_ device: UInt) {
        let device = Int(bitPattern: device)
        major = (device >> 8 & 0xFFF) | (device >> 32 & ~0xFFF)
        minor = (device & 0xFF) | (device >> 12 & ~0xFF)
    }

    /// nil where the path cannot be looked at.
    package init?(of path: String) {
        var figures = stat()
        guard stat(path, &figures) == 0 else { return nil }
        self.init(figures.st_dev)
    }
}

extension SystemFiles {
    /// Bytes that a disk, or a part of one, was asked to write since the boot (Linux, Documentation/block/stat.rst).
    ///
    /// `block`: its folder in sysfs. nil for what is no count.
    package func writtenBytes(_ block: String) -> Int64? {
        let figures = text(block + "/stat")?.split(whereSeparator: \.isWhitespace) ?? []
        guard figures.count > 6, let sectors = Int64(figures[6]), (0..<1 << 50).contains(sectors)
        else { return nil }
        return sectors * 512
    }
}
