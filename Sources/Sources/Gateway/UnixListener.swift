// A socket in the runtime directory that programs of this device connect to.
internal import Board
internal import CLinux
internal import Glibc
internal import Host

/// Owns a listening Unix socket: mode 0660, of the group `waypost`; a stale file is replaced.
struct UnixListener: ~Copyable, Sendable {
    private let path: String
    private let socket: Descriptor

    /// To poll for clients that want to connect.
    var descriptor: Int32 { socket.number }

    /// `name` stands in the error: `control socket`.
    init(path: String, name: String, waiting: Int32) throws {
        let flags = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let number = Glibc.socket(AF_UNIX, Int32(flags), 0)
        guard number >= 0 else { throw SystemError.last("socket", on: path) }
        let socket = Descriptor(owning: number)
        unlink(path)
        let bound = UnixSocket.withAddress(Array(path.utf8)) { bind(number, $0, $1) }
        guard bound == 0, listen(number, waiting) == 0 else {
            throw Failure("\(path): cannot make the \(name): \(String(cString: strerror(errno)))")
        }
        chmod(path, 0o660)
        if let group = getgrnam("waypost") { _ = chown(path, uid_t.max, group.pointee.gr_gid) }
        self.path = path
        self.socket = socket
    }

    /// Takes the clients that wait, 64 at most.
    ///
    /// False where one cannot be taken for now: the process has no descriptor left (EMFILE), or the like.
    func acceptAll(_ welcome: (Int32) -> Void) -> Bool {
        for _ in 0..<64 {
            let number = waypost_accept(socket.number)
            guard number >= 0 else { return [EAGAIN, EINTR, ECONNABORTED].contains(-number) }
            welcome(number)
        }
        return true
    }

    /// Nobody finds it any more.
    func remove() { unlink(path) }
}
