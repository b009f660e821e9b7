// Small files that hold a setting, a token or an id: read whole, replaced atomically and durably.
package import CLinux
import Glibc
import Synchronization

/// The content and mode of a file that was read whole.
package struct SmallFile {
    /// The content; one byte longer than the limit asked for if the file is larger than that.
    package var bytes: [UInt8]
    package var mode: mode_t

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
        let bytes = try readBytes(descriptor.number, path, limit: limit + 1)
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
        mode: mode_t = 0o644,
        owner: FileOwner? = nil
    ) throws(SystemError) -> Bool {
        let path = "\(directory)/\(name)"
        let folder = try open(directory, for: path)
        let temporary = temporaryName(name)
        unlinkat(folder.number, temporary, 0)
        defer { unlinkat(folder.number, temporary, 0) }
        let file = try make(temporary, in: folder, mode: mode, for: path)
        try file.write(whole: bytes, path)
        if let owner { try file.give(to: owner, path) }
        try file.sync(path)
        // link(2) instead of rename(2): if two processes race, one creates the file and the other
        // sees it.
        if linkat(folder.number, temporary, folder.number, name, 0) != 0 {
            let error = SystemError.last("link", on: path)
            if error.code == EEXIST { return false }
            throw error
        }
        try folder.sync(directory)
        return true
    }

    /// Creates or replaces a file atomically.
    ///
    /// Safe for root in a directory of another user: owner and mode are set on the open file, never
    /// by name. `owner` is the new owner. `keepsOwner` keeps the mode of the replaced file and, if
    /// this user may change it, its owner. `isSynced` makes it survive a power cut.
    package static func replace(
        _ path: String,
        _ bytes: [UInt8],
        mode: mode_t,
        owner: FileOwner? = nil,
        keepsOwner: Bool = false,
        isSynced: Bool = true
    ) throws(SystemError) {
        let folder = try open(Host.folder(ofPath: path), for: path)
        let name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
        let temporary = temporaryName(name)
        unlinkat(folder.number, temporary, 0)
        defer { unlinkat(folder.number, temporary, 0) }
        let file = try make(temporary, in: folder, mode: 0o600, for: path)
        try file.write(whole: bytes, path)
        var old = stat()
        let isThere = keepsOwner && fstatat(folder.number, name, &old, 0) == 0
        if isThere {
            // Only root can, and must, keep another owner.
            let former = FileOwner(user: old.st_uid, group: old.st_gid)
            if geteuid() == 0 {
                try file.give(to: former, path)
            } else {
                try? file.give(to: former, path)
            }
        } else if let owner {
            try file.give(to: owner, path)
        }
        // Not for the mode it was made with: a file system without modes refuses to set any.
        let wanted = isThere ? old.st_mode & 0o777 : mode
        guard wanted == 0o600 || fchmod(file.number, wanted) == 0 else {
            throw SystemError.last("chmod", on: path)
        }
        if isSynced { try file.sync(path) }
        guard renameat(folder.number, temporary, folder.number, name) == 0 else {
            throw SystemError.last("rename", on: path)
        }
        if isSynced { try folder.sync(path) }
    }

    /// Unique per call, so that concurrent writers never share a temporary file.
    private static func temporaryName(_ name: String) -> String {
        "\(name).\(getpid())-\(count.wrappingAdd(1, ordering: .relaxed).newValue).new"
    }

    private static let count = Atomic(0)

    /// Opens a folder; errors name `path`, the file to be created.
    private static func open(_ folder: String, for path: String) throws(SystemError) -> Descriptor {
        do throws(SystemError) {
            return try Descriptor(opening: folder, O_RDONLY | O_DIRECTORY)
        } catch {
            throw SystemError(error.call, on: path, code: error.code)
        }
    }

    private static func make(
        _ temporary: String,
        in folder: borrowing Descriptor,
        mode: UInt32,
        for path: String
    ) throws(SystemError) -> Descriptor {
        let flags = O_WRONLY | O_CREAT | O_EXCL
        return try Descriptor(opening: temporary, in: folder, flags, mode: mode, for: path)
    }

    private static func readBytes(
        _ descriptor: Int32,
        _ path: String,
        limit: Int
    ) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < limit {
            let count = Glibc.read(descriptor, &buffer, min(buffer.count, limit - bytes.count))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError.last("read", on: path) }
            if count == 0 { break }
            bytes += buffer.prefix(count)
        }
        return bytes
    }
}
