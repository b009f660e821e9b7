// Descriptor calls for files written whole and durably; each error names its system call.
import CLinux
import Glibc

extension Descriptor {
    /// Opens a file, a folder or a device (open(2)); child processes do not inherit it.
    package init(
        opening path: String,
        _ flags: Int32,
        mode: UInt32 = 0
    ) throws(SystemError) {
        let number = open(path, flags | O_CLOEXEC, mode)
        guard number >= 0 else { throw SystemError.last("open", on: path) }
        self.init(owning: number)
    }

    /// Opens `name` in an open folder (openat(2)); does not follow a symbolic link of that name.
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

    /// Changes the owner of the open file (fchown(2)), even if its name now leads elsewhere.
    package borrowing func give(to owner: FileOwner, _ path: String) throws(SystemError) {
        guard fchown(number, owner.user, owner.group) == 0 else {
            throw SystemError.last("chown", on: path)
        }
    }

    /// Writes all bytes in one call; throws ENOSPC after a short write.
    ///
    /// Errors name `path`.
    package borrowing func write(whole bytes: [UInt8], _ path: String) throws(SystemError) {
        let count = Glibc.write(number, bytes, bytes.count)
        if count < 0 { throw SystemError.last("write", on: path) }
        guard count == bytes.count else { throw SystemError("write", on: path, code: ENOSPC) }
    }

    /// Fsyncs the file; for a folder, its list of names.
    package borrowing func sync(_ path: String) throws(SystemError) {
        guard fsync(number) == 0 else { throw SystemError.last("fsync", on: path) }
    }
}

extension WallTime {
    /// Makes it the modification time of an open file, where the file system has room for it.
    package func setModification(of file: Int32) {
        let seconds = Int(milliseconds / 1000)
        let time = timespec(tv_sec: seconds, tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        _ = futimens(file, [time, time])
    }
}
