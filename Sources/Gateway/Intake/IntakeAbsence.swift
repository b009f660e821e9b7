// Why `waypost put` reaches no gateway, and whether waiting for one may help.
import Glibc
import Host

/// The reasons why nothing answers at the intake socket; they look alike from outside.
enum IntakeAbsence: Equatable {
    case noRight(path: String)
    case notRunning(path: String)
    case starting
    case silent(path: String)
    /// The gateway runs, and has no such stream.
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

    /// A gateway opens its control socket when it has started, or when its start takes long.
    private static func ofRunning(stream: String, path: String, _ configuration: Configuration)
        -> Self
    {
        let client: ControlClient
        do { client = try ControlClient(configuration) } catch { return .starting }
        guard let status = try? client.status() else { return .silent(path: path) }
        return status.isStarting ? .starting : .undeclared(stream: stream)
    }

    /// Only a person can change it.
    var isFinal: Bool {
        if case .noRight = self { true } else { false }
    }

    /// The gateway may answer in a while without anybody doing something.
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
            "waypost runs but does not answer at \(path); `waypost status` shows how the gateway is"
        case .undeclared(let stream):
            "the running gateway does not know [stream.\(stream)] yet; `systemctl reload waypost`"
        case .other(let error): "\(error); `waypost status` shows how the gateway is"
        }
    }
}
