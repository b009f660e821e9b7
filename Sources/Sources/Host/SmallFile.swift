// Small files that hold a setting, a token or an id: read whole, written so that they last.
package import CLinux
internal import Glibc
internal import Synchronization

/// A file that was read whole.
package struct SmallFile {
    /// At most one byte more than the limit asked for: that many means it is larger.
    package var bytes: [UInt8]
    package var mode: mode_t

    package var isRegular: Bool { mode & S_IFMT == S_IFREG }

    /// Reads a file; a pipe is read to its end only if it may `wait` for the other side.
    package static func read(
        _ path: String,
        limit: Int,
        wait: Bool = false
    ) throws(SystemError) -> SmallFile {
        let flags = O_RDONLY | O_NOCTTY | (wait ? 0 : O_NONBLOCK)
        let descriptor = try Descriptor(opening: path, flags)
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else {
            throw SystemError.last("fstat", on: path)
        }
        let bytes = try readBytes(descriptor.number, path, limit: limit + 1)
        return SmallFile(bytes: bytes, mode: status.st_mode)
    }

    /// Makes `name` in `directory` at once, whole and durable: after a power cut it is there or it is not.
    ///
    /// False, and nothing is changed, when there is one already.
    package static func create(
        _ name: String,
        in directory: String,
        _ bytes: [UInt8]
    ) throws(SystemError) -> Bool {
        let path = "\(directory)/\(name)"
        let temporary = temporaryName(path)
        unlink(temporary)
        defer { unlink(temporary) }
        try write(bytes, to: temporary, mode: 0o644, for: path)
        // link(2) rather than rename(2): of two processes at once, one makes it and the other sees it.
        if link(temporary, path) != 0 {
            let error = SystemError.last("link", on: path)
            if error.code == EEXIST { return false }
            throw error
        }
        try syncFolder(directory)
        return true
    }

    /// Makes or replaces a file at once and whole.
    ///
    /// `keepsOwner`: it keeps the mode and the owner of the one that it replaces; `isSynced`: a power cut may not
    /// take it.
    package static func replace(
        _ path: String,
        _ bytes: [UInt8],
        mode: mode_t,
        keepsOwner: Bool = false,
        isSynced: Bool = true
    ) throws(SystemError) {
        let temporary = temporaryName(path)
        unlink(temporary)
        defer { unlink(temporary) }
        try write(bytes, to: temporary, mode: 0o600, for: path, isSynced: isSynced)
        var old = stat()
        let isThere = keepsOwner && stat(path, &old) == 0
        if isThere { _ = chown(temporary, old.st_uid, old.st_gid) }
        chmod(temporary, isThere ? old.st_mode & 0o7777 : mode)
        guard rename(temporary, path) == 0 else { throw SystemError.last("rename", on: path) }
        if isSynced { try syncFolder(folder(ofPath: path)) }
    }

    /// Another one for each thread that is at it.
    private static func temporaryName(_ path: String) -> String {
        "\(path).\(getpid())-\(count.wrappingAdd(1, ordering: .relaxed).newValue).new"
    }

    private static let count = Atomic(0)

    /// An error names `path`: the temporary name is another one each time, and says nothing to anybody.
    private static func write(
        _ bytes: [UInt8],
        to temporary: String,
        mode: mode_t,
        for path: String,
        isSynced: Bool = true
    ) throws(SystemError) {
        do throws(SystemError) {
            let file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
            try file.write(whole: bytes, path)
            if isSynced { try file.sync(path) }
        } catch {
            throw SystemError(error.call, on: path, code: error.code)
        }
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
