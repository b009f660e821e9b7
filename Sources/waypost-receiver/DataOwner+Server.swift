// Keeps a server of root out of the data folder of another user's server.
import Glibc
import Host
import ServerArchive
import ServerBase

extension DataOwner {
    /// Throws if a server of this process would leave files that the owner's server cannot write.
    static func expectSelf(_ data: String) throws {
        var status = stat()
        guard geteuid() == 0, stat(data, &status) == 0, status.st_uid != 0 else { return }
        let name = userName(status.st_uid)
        throw StartError(
            "--data \(data) belongs to \(name), and files of root there would stop its server",
            Failure(
                "run the server as that user: sudo -u \(name) waypost-receiver …, or as its service"
            )
        )
    }
}
