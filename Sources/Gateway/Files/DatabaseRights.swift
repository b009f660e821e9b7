// A database that the user of a command may not read, or that another program holds.
import Glibc
import Host
import Queue

enum DatabaseRights {
    /// Why SQLite refuses it, with the next step; nil where neither rights nor another program are the reason.
    static func refusal(_ path: String, after error: any Error) -> Failure? {
        if let holder = databaseHolder(of: path, after: error) {
            return Failure("\(path): \(holder)")
        }
        guard geteuid() != 0 else { return nil }
        if access(path, R_OK) != 0, errno == EACCES {
            return Failure("\(path): this user may not read it; `sudo waypost …` may")
        }
        // SQLite makes files beside it where no gateway has them open.
        guard access("\(path)-wal", F_OK) != 0, access(folder(ofPath: path), W_OK) != 0,
            errno == EACCES
        else { return nil }
        return Failure(
            "\(path): only root can read it while waypost does not run; `sudo waypost …` may"
        )
    }
}
