// The service's user, which must own the files that root makes for it.
import CLinux
import Configuration
import Glibc
import Host
import Setup

/// The user that the service runs as, and that must own its files.
struct ServiceOwner: Sendable {
    private(set) var ids: FileOwner?

    /// Finds the owner of the state directory; `ids` stays nil unless run by root.
    ///
    /// If root owns the directory, as on a new partition, the service has never used it; then looks
    /// up the user `waypost`.
    init(stateDirectory: String) {
        guard geteuid() == 0 else { return }
        var figures = stat()
        if stat(stateDirectory, &figures) == 0, figures.st_uid != 0 {
            ids = FileOwner(user: figures.st_uid, group: figures.st_gid)
        } else if let user = getpwnam("waypost") {
            ids = FileOwner(user: user.pointee.pw_uid, group: user.pointee.pw_gid)
        }
    }

    /// Makes the service's directories and gives them to the service's user.
    func prepare(_ configuration: Configuration) throws {
        try configuration.prepareDirectories()
        own(configuration.stateDirectory)
        own(configuration.runtimeDirectory)
    }

    /// Gives a directory that root owns to the service's user.
    ///
    /// Opens it without following a symbolic link: the folder above may be another user's.
    func own(_ directory: String) {
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
        guard let ids, let folder = try? Descriptor(opening: directory, flags) else { return }
        var figures = stat()
        guard fstat(folder.number, &figures) == 0, figures.st_uid == 0 else { return }
        try? folder.give(to: ids, directory)
    }
}
