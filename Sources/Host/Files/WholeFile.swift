// Files that get their names when they are whole.
import CLinux
import Glibc
import Synchronization

/// A file with a temporary name in its folder, until it is whole.
///
/// Nobody sees a part of it: its own name leads to all of it or to what was there before. A file
/// that did not get its name is removed by deinit. Safe for root in a directory of another user: owner and
/// mode are set on the open file, and no link at either name is followed.
package final class WholeFile {
    package let file: Descriptor
    private let folder: Descriptor
    private let name: String
    /// For errors.
    private let path: String
    /// Nil once it has its name, or if it is written in place.
    private var temporary: String?

    /// Creates a file in an open folder.
    ///
    /// `flags`: O_EXCL, or O_TRUNC to go on with a temporary file that is there. `mode` is subject
    /// to the umask.
    package init(
        _ name: String,
        in folder: consuming Descriptor,
        as temporary: String,
        _ flags: Int32 = O_EXCL,
        mode: UInt32,
        for path: String
    ) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | flags
        file = try Descriptor(opening: temporary, in: folder, flags, mode: mode, for: path)
        self.folder = folder
        (self.name, self.path, self.temporary) = (name, path, temporary)
    }

    /// Creates a file beside its path.
    ///
    /// `suffix`: of its temporary name, which is then gone on with; without one, no other writer
    /// has the same.
    package convenience init(
        _ path: String,
        suffix: String? = nil,
        mode: UInt32
    ) throws(SystemError) {
        let parent = Host.folder(ofPath: path)
        let folder = try Descriptor(opening: parent, O_RDONLY | O_DIRECTORY, for: path)
        let name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
        let temporary = name + (suffix ?? WholeFile.ownSuffix())
        if suffix == nil { unlinkat(folder.number, temporary, 0) }
        let flags = suffix == nil ? O_EXCL : O_TRUNC
        try self.init(name, in: folder, as: temporary, flags, mode: mode, for: path)
    }

    /// Writes to an open device or pipe, which has its name.
    package init(inPlace file: consuming Descriptor, _ path: String) {
        self.file = file
        folder = Descriptor(owning: -1)
        (name, self.path) = (path, path)
    }

    deinit {
        if let temporary { unlinkat(folder.number, temporary, 0) }
    }

    /// Writes all bytes behind the others.
    package func append(_ bytes: [UInt8]) throws(SystemError) {
        mustHold(temporary != nil || name == path, "a file with its name is whole")
        guard let error = writeAll(bytes, to: file.number) else { return }
        throw SystemError(error.call, on: path, code: error.code)
    }

    /// Owner and permissions of the file that has its name now; nil if there is none.
    var replaced: (owner: FileOwner, mode: UInt32)? {
        var old = stat()
        guard fstatat(folder.number, name, &old, 0) == 0 else { return nil }
        return (FileOwner(user: old.st_uid, group: old.st_gid), old.st_mode & 0o777)
    }

    /// Gives it its name; returns false if a file has that, and may not be replaced.
    ///
    /// `isSynced` makes it survive a power cut.
    @discardableResult
    package func finish(isSynced: Bool, replaces: Bool = true) throws(SystemError) -> Bool {
        guard let temporary else { return true }
        if isSynced { try file.sync(path) }
        if replaces {
            guard renameat(folder.number, temporary, folder.number, name) == 0 else {
                throw SystemError.last("rename", on: path)
            }
            self.temporary = nil
        } else if linkat(folder.number, temporary, folder.number, name, 0) != 0 {
            // link(2) instead of rename(2): if two processes race, one creates the file and the
            // other sees it.
            let error = SystemError.last("link", on: path)
            if error.code == EEXIST { return false }
            throw error
        }
        if isSynced { try folder.sync(path) }
        return true
    }

    private static func ownSuffix() -> String {
        ".\(getpid())-\(count.wrappingAdd(1, ordering: .relaxed).newValue).new"
    }

    private static let count = Atomic(0)
}

extension WallTime {
    /// Makes it the modification time of an open file, where the file system has room for it.
    package func setModification(of file: Int32) {
        let seconds = Int(milliseconds / 1000)
        let time = timespec(tv_sec: seconds, tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        _ = futimens(file, [time, time])
    }
}
