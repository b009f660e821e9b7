// Explains why `waypost put` cannot reach the gateway, and whether a retry may help.
import Glibc
import Host
import Setup
import Status

/// The reason why nothing answers at the intake socket.
enum IntakeAbsence: Equatable {
    case noRight(path: String)
    case notRunning(path: String)
    case starting
    case silent(path: String)
    /// The gateway is running and does not know the stream.
    case undeclared(stream: String)
    case other(SystemError)

    init(_ error: SystemError, stream: String, path: String, _ configuration: Configuration) {
        switch error.code {
        case EACCES, EPERM: self = .noRight(path: path)
        case ENOENT, ECONNREFUSED:
            guard case .running = DaemonPresence(stateDirectory: configuration.stateDirectory)
            else {
                self = .notRunning(path: path)
                return
            }
            self = Self.ofRunning(stream: stream, path: path, configuration)
        case EAGAIN: self = .silent(path: path)
        default: self = .other(error)
        }
    }

    /// Asks the control socket, which opens once the gateway has started, or if that takes long.
    private static func ofRunning(stream: String, path: String, _ configuration: Configuration)
        -> Self
    {
        let client: ControlClient
        do { client = try ControlClient(configuration) } catch { return .starting }
        guard let status = try? client.status() else { return .silent(path: path) }
        return status.isStarting ? .starting : .undeclared(stream: stream)
    }

    /// True if only a person can fix it.
    var isFinal: Bool {
        if case .noRight = self { true } else { false }
    }

    /// True if a retry may succeed without a person.
    var endsByItself: Bool {
        switch self {
        case .starting, .silent: true
        default: false
        }
    }

    var message: String {
        switch self {
        case .noRight(let path):
            "\(path): this user has no right to it; "
                + "`sudo usermod -aG waypost $USER`, then log in again"
        case .notRunning(let path):
            "waypost is not running (nothing answers at \(path)); `systemctl start waypost`"
        case .starting: "waypost is starting; `waypost status` says what it waits for"
        case .silent(let path):
            "waypost is running but does not answer at \(path); `waypost status` shows its state"
        case .undeclared(let stream):
            "the running gateway does not know [stream.\(stream)] yet; `systemctl reload waypost`"
        case .other(let error): "\(error); `waypost status` shows the state of the gateway"
        }
    }
}
