// Explains why a command cannot read the database.
import Glibc
package import Host
import Queue

package enum DatabaseRights {
    /// Returns the reason, permissions or another program, with a remedy; nil for any other reason.
    package static func refusal(_ path: String, after error: any Error) -> Failure? {
        if let holder = databaseHolder(of: path, after: error) {
            return Failure("\(path): \(holder)")
        }
        guard geteuid() != 0 else { return nil }
        if access(path, R_OK) != 0, errno == EACCES {
            return Failure("\(path): this user may not read it; `sudo waypost …` may")
        }
        // Without a running gateway, SQLite must create files beside the database.
        guard access("\(path)-wal", F_OK) != 0, access(folder(ofPath: path), W_OK) != 0,
            errno == EACCES
        else { return nil }
        return Failure(
            "\(path): only root can read it while waypost is not running; `sudo waypost …` may"
        )
    }
}
