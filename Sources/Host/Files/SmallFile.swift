// Small files that hold a setting, a token or an id: read whole, replaced atomically and durably.
import CLinux
import Glibc

/// The content and mode of a file that was read whole.
package struct SmallFile {
    /// The content; one byte longer than the limit asked for if the file is larger than that.
    package var bytes: [UInt8]
    package var mode: UInt32

    package var isRegular: Bool { mode & S_IFMT == S_IFREG }

    /// Reads a file; reads a pipe to its end only if `wait` is true.
    ///
    /// Pass `followsLink: false` in a directory of another user, who may have put a symbolic link
    /// there.
    package static func read(
        _ path: String,
        limit: Int,
        wait: Bool = false,
        followsLink: Bool = true
    ) throws(SystemError) -> SmallFile {
        let flags =
            O_RDONLY | O_NOCTTY | (wait ? 0 : O_NONBLOCK) | (followsLink ? 0 : O_NOFOLLOW)
        let descriptor = try Descriptor(opening: path, flags)
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else {
            throw SystemError.last("fstat", on: path)
        }
        let bytes = try readAll(from: descriptor.number, limit: limit + 1, path)
        return SmallFile(bytes: bytes, mode: status.st_mode)
    }

    /// Creates `name` in `directory` atomically and durably; returns false if it already exists.
    ///
    /// After a power cut the file is either complete or absent. `owner` is set before the file gets
    /// its name.
    package static func create(
        _ name: String,
        in directory: String,
        _ bytes: [UInt8],
        mode: UInt32 = 0o644,
        owner: FileOwner? = nil
    ) throws(SystemError) -> Bool {
        let path = "\(directory)/\(name)"
        let file = try WholeFile(path, mode: mode)
        try file.append(bytes)
        if let owner { try file.file.give(to: owner, path) }
        return try file.finish(isSynced: true, replaces: false)
    }

    /// Creates or replaces a file atomically.
    ///
    /// Safe for root in a directory of another user: owner and mode are set on the open file, never
    /// by name. `owner` is the new owner. `keepsOwner` keeps the mode of the replaced file and, if
    /// this user may change it, its owner. `isSynced` makes it survive a power cut.
    package static func replace(
        _ path: String,
        _ bytes: [UInt8],
        mode: UInt32,
        owner: FileOwner? = nil,
        keepsOwner: Bool = false,
        isSynced: Bool = true
    ) throws(SystemError) {
        let file = try WholeFile(path, mode: 0o600)
        try file.append(bytes)
        let old = keepsOwner ? file.replaced : nil
        if let old {
            // Only root can, and must, keep another owner.
            if geteuid() == 0 {
                try file.file.give(to: old.owner, path)
            } else {
                try? file.file.give(to: old.owner, path)
            }
        } else if let owner {
            try file.file.give(to: owner, path)
        }
        // Not for the mode it was made with: a file system without modes refuses to set any.
        let wanted = old?.mode ?? mode
        guard wanted == 0o600 || fchmod(file.file.number, wanted) == 0 else {
            throw SystemError.last("chmod", on: path)
        }
        try file.finish(isSynced: isSynced)
    }
}
