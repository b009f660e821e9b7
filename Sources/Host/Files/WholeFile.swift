// Files that are written whole and last: each call that may fail is an error with its own name.
import CLinux
import Glibc

extension Descriptor {
    /// Opens a file, a folder or a device (open(2)); programs that are started do not get it.
    package init(
        opening path: String,
        _ flags: Int32,
        mode: UInt32 = 0
    ) throws(SystemError) {
        let number = open(path, flags | O_CLOEXEC, mode)
        guard number >= 0 else { throw SystemError.last("open", on: path) }
        self.init(owning: number)
    }

    /// Opens `name` in an open folder (openat(2)); a symbolic link of that name is not followed.
    ///
    /// Errors name `path`.
    package init(
        opening name: String,
        in folder: borrowing Descriptor,
        _ flags: Int32,
        mode: UInt32 = 0,
        for path: String
    ) throws(SystemError) {
        let number = openat(folder.number, name, flags | O_CLOEXEC | O_NOFOLLOW, mode)
        guard number >= 0 else { throw SystemError.last("open", on: path) }
        self.init(owning: number)
    }

    /// Changes the owner of the open file, whatever its name leads to by now.
    package borrowing func give(to owner: FileOwner, _ path: String) throws(SystemError) {
        guard fchown(number, owner.user, owner.group) == 0 else {
            throw SystemError.last("chown", on: path)
        }
    }

    /// Writes all of it in one call; a part alone means that there is no room.
    ///
    /// `path`: for the error.
    package borrowing func write(whole bytes: [UInt8], _ path: String) throws(SystemError) {
        let count = Glibc.write(number, bytes, bytes.count)
        if count < 0 { throw SystemError.last("write", on: path) }
        guard count == bytes.count else { throw SystemError("write", on: path, code: ENOSPC) }
    }

    /// What was written is on the disk once this returns; of a folder: which files it holds.
    package borrowing func sync(_ path: String) throws(SystemError) {
        guard fsync(number) == 0 else { throw SystemError.last("fsync", on: path) }
    }
}
