// A Unix socket in the runtime directory that programs on this device connect to.
import CLinux
import Glibc

/// Owns a listening Unix socket: mode 0660, group `waypost`; replaces a stale file.
package struct UnixListener: ~Copyable, Sendable {
    private let path: String
    private let name: String
    private let backlog: Int32
    private let socket: Descriptor

    /// Poll it for clients that want to connect.
    package var descriptor: Int32 { socket.number }

    /// `name` is how the error names it: `control socket`.
    package init(path: String, name: String, waiting: Int32) throws {
        // Before the properties: Swift 6.0.3 crashes if a partly initialised owner throws.
        let socket = try Self.listening(at: path, name, waiting)
        (self.path, self.name, backlog) = (path, name, waiting)
        self.socket = socket
    }

    /// The file gets its path last: no client finds it with other permissions or before it listens.
    private static func listening(
        at path: String,
        _ name: String,
        _ backlog: Int32
    ) throws -> Descriptor {
        let flags = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let number = Glibc.socket(AF_UNIX, Int32(flags), 0)
        guard number >= 0 else { throw SystemError.last("socket", on: path) }
        let socket = Descriptor(owning: number)
        let unfinished = path + ".new"
        unlink(unfinished)
        let bound = UnixSocket.withAddress(Array(unfinished.utf8)) { bind(number, $0, $1) }
        guard bound == 0, listen(number, backlog) == 0 else { throw failure(path, name) }
        chmod(unfinished, 0o660)
        if let group = getgrnam("waypost") {
            _ = chown(unfinished, uid_t.max, group.pointee.gr_gid)
        }
        guard rename(unfinished, path) == 0 else { throw failure(path, name) }
        return socket
    }

    private static func failure(_ path: String, _ name: String) -> Failure {
        Failure("\(path): cannot make the \(name): \(String(cString: strerror(errno)))")
    }

    /// Recreates the socket if somebody removed its file; connected clients stay.
    package func restore() {
        guard access(path, F_OK) != 0, errno == ENOENT,
            let again = try? Self.listening(at: path, name, backlog)
        else { return }
        // Keeps the descriptor's number, so that a poll on it continues to work.
        dup2(again.number, socket.number)
        _ = fcntl(socket.number, F_SETFD, FD_CLOEXEC)
    }

    /// Accepts the waiting clients as `acceptWaiting` does.
    package func acceptAll(_ welcome: (Int32) -> Void) -> Bool {
        acceptWaiting(socket.number, welcome)
    }

    /// Deletes the socket's file.
    package func remove() { unlink(path) }
}
