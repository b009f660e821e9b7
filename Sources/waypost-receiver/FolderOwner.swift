// Runs commands of root as the owner of the data folder, so that the service can use its files.
import Glibc
import Receiver

/// The owner of a data folder.
struct FolderOwner {
    private let folder: String
    /// Nil unless this process is root's and the folder another user's.
    private let other: (user: uid_t, group: gid_t)?

    init(of folder: String) {
        self.folder = folder
        var status = stat()
        guard geteuid() == 0, stat(folder, &status) == 0, status.st_uid != 0 else {
            other = nil
            return
        }
        other = (status.st_uid, status.st_gid)
    }

    /// Gives up root's rights for those of the owner, for the rest of the process.
    func become() throws(Trouble) {
        guard let other else { return }
        // The groups first: the user may not change them.
        guard setgroups(0, nil) == 0, setgid(other.group) == 0, setuid(other.user) == 0 else {
            throw Trouble("setuid to the owner of", folder)
        }
    }

    /// Throws if a server of this process would leave files that the owner's server cannot write.
    func expectSelf() throws {
        guard let other else { return }
        let name =
            getpwuid(other.user).map { String(cString: $0.pointee.pw_name) } ?? "\(other.user)"
        throw StartFailure(
            "--data \(folder) belongs to \(name), and files of root there would stop its server",
            Trouble(
                "run the server as that user: sudo -u \(name) waypost-receiver …, or as its service"
            )
        )
    }
}
