// Lets root work in a data folder as the user that owns it.
import CLinux
import Glibc
import Host

/// Switches from root to the owner of a data folder, for the rest of the process.
///
/// The owner could otherwise place links that lead root to other files, and the server could not
/// read what root writes.
package enum DataOwner {
    /// Switches; `creating`: a folder that root creates for the owner first.
    package static func become(of data: String, creating folder: String? = nil) throws {
        var status = stat()
        guard geteuid() == 0, stat(data, &status) == 0, status.st_uid != 0 else { return }
        if let folder, mkdir(folder, 0o750) == 0 {
            guard lchown(folder, status.st_uid, status.st_gid) == 0 else {
                throw SystemError.last("chown", on: folder)
            }
        }
        guard setgroups(0, nil) == 0, setgid(status.st_gid) == 0, setuid(status.st_uid) == 0 else {
            throw SystemError.last("setuid", on: data)
        }
    }
}
