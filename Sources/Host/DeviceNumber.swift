// The number that the kernel knows a device by.
internal import Glibc

/// Major and minor number (makedev(3)) of the file system that a file or folder is on.
package struct DeviceNumber: Sendable, Equatable {
    package let major: Int
    package let minor: Int

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
