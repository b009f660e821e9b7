// The client of the control socket, used by the field commands.
import Glibc
import Host
package import Setup

/// Why the daemon cannot be asked: one of three cases that need different remedies.
package enum ControlError: Error, Sendable, Equatable, CustomStringConvertible {
    /// This user may not open the socket. `isRunning` may be known from the lock all the same.
    case noRight(path: String, isRunning: Bool?)
    /// The daemon is running but does not answer.
    case silent(path: String, pid: Int)
    case gone(path: String)

    package var description: String {
        switch self {
        case .noRight(let path, _):
            "\(path): this user may not ask waypost, only root and the group waypost may; "
                + "`sudo waypost …`, or `sudo usermod -aG waypost $USER` and log in again"
        case .silent(let path, let pid):
            "waypost is running (process \(pid)) but does not answer at \(path); "
                + "see `journalctl -u waypost`, or restart it: `sudo systemctl restart waypost`"
        case .gone(let path):
            "waypost is not running (nothing answers at \(path)); `systemctl start waypost`"
        }
    }

    /// nil if unknown.
    package var isRunning: Bool? {
        switch self {
        case .noRight(_, let isRunning): isRunning
        case .silent: true
        case .gone: false
        }
    }
}

/// A connection to the daemon that sends one request at a time.
package final class ControlClient {
    /// The default timeout, longer than the second that a daemon needs, for busy machines.
    package static let patience = Duration.seconds(5)
    /// The timeout of commands that show the state, so that they end within a second.
    package static let statusPatience = Duration.milliseconds(800)

    private let answerBy: BootInstant
    private let socket: LineChannel
    private let path: String
    private let stateDirectory: String
    /// True once the daemon has closed the connection.
    package private(set) var isClosed = false

    /// Connects, or throws within a second.
    ///
    /// `patience`: the timeout for connecting and one request without its own timeout, together.
    package init(
        _ configuration: Configuration,
        patience: Duration = ControlClient.patience
    ) throws(ControlError) {
        path = configuration.socketPath
        stateDirectory = configuration.stateDirectory
        answerBy = SystemClock().now() + patience
        do throws(SystemError) {
            socket = LineChannel(
                try UnixSocket.connect(to: path, within: min(patience, .seconds(1)))
            )
        } catch {
            throw Self.refusal(error.code, path, stateDirectory)
        }
    }

    private static func refusal(_ code: Int32, _ path: String, _ directory: String)
        -> ControlError
    {
        let presence = DaemonPresence(stateDirectory: directory)
        switch presence {
        case .running(let pid) where code != EACCES && code != EPERM:
            return .silent(path: path, pid: pid)
        case .running: return .noRight(path: path, isRunning: true)
        case .unknown where code == EACCES || code == EPERM:
            return .noRight(path: path, isRunning: nil)
        case .gone, .unknown: return .gone(path: path)
        }
    }

    /// Connects and checks that the daemon answers, so that a long request is not sent in vain.
    ///
    /// Throws ControlError within two seconds if none answers.
    package static func answering(_ configuration: Configuration) throws -> ControlClient {
        let client = try ControlClient(configuration, patience: .seconds(2))
        _ = try client.status()
        return client
    }

    package func status() throws -> StatusReport {
        let reply = try ask(.init(.status))
        guard let status = reply.status else { throw lost }
        return status
    }

    /// Sends a request and waits for the reply.
    ///
    /// Without a `timeout` it waits for the rest of the client's patience.
    ///
    /// Throws ControlError if no reply came, and a Failure with the daemon's message on refusal.
    package func ask(_ request: ControlRequest, timeout: Duration? = nil) throws -> ControlReply {
        socket.outgoing = request.json + [10]
        _ = socket.send(now: SystemClock().now())
        let left = timeout ?? max(.zero, answerBy - SystemClock().now())
        // A daemon with too many clients sends the reason and closes without reading the request.
        guard let reply = next(timeout: socket.outgoing.isEmpty ? left : .zero) else {
            throw timeout == nil ? lost(by: answerBy) : lost
        }
        if let error = reply.error { throw Failure(error) }
        return reply
    }

    /// The reason why no reply came.
    package var lost: ControlError { lost(by: SystemClock().now() + Self.patience) }

    /// Waits for the process to end: a stopping daemon closes its clients before it exits.
    private func lost(by deadline: BootInstant) -> ControlError {
        var refusal = Self.refusal(ECONNREFUSED, path, stateDirectory)
        while isClosed, refusal.isRunning == true, SystemClock().now() < deadline {
            var none: [PollEntry] = []
            _ = wait(for: &none, timeout: .milliseconds(100))
            refusal = Self.refusal(ECONNREFUSED, path, stateDirectory)
        }
        return refusal
    }

    /// Returns the next reply; nil if the daemon is gone or on timeout (nil: no timeout).
    package func next(timeout: Duration?) -> ControlReply? {
        let clock = SystemClock()
        let deadline = timeout.map { clock.now() + $0 }
        while true {
            if case .whole(let line) = socket.input.next(limit: 64 << 20) {
                return ControlReply(line: line)
            }
            var entries = [PollEntry(socket.number)]
            let left = deadline.map { max(.zero, $0 - clock.now()) }
            _ = wait(for: &entries, timeout: left)
            if entries[0].isReady {
                isClosed = socket.receive() == .ended
                if isClosed { return nil }
            } else if left == .zero {
                return nil
            }
        }
    }
}
