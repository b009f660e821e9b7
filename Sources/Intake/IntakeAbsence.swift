// Explains why `waypost put` cannot reach the gateway, and whether a retry may help.
import Glibc
import Host
import Setup
import Status

/// The reason why nothing answers at the intake socket, with its remedy.
struct IntakeAbsence {
    var message: String
    /// True if only a person can fix it.
    var isFinal = false
    /// True if a retry may succeed without a person.
    var endsByItself = false
}

extension IntakeAbsence {
    init(_ error: SystemError, stream: String, path: String, _ configuration: Configuration) {
        switch error.code {
        case EACCES, EPERM:
            let remedy = "`sudo usermod -aG waypost $USER`, then log in again"
            self.init(message: "\(path): this user has no right to it; \(remedy)", isFinal: true)
        case ENOENT, ECONNREFUSED:
            if case .running = DaemonPresence(stateDirectory: configuration.stateDirectory) {
                self = Self.ofRunning(stream: stream, path: path, configuration)
            } else {
                let state = "waypost is not running (nothing answers at \(path))"
                self.init(message: "\(state); `systemctl start waypost`")
            }
        case EAGAIN: self = Self.silent(path)
        default: self.init(message: "\(error); `waypost status` shows the state of the gateway")
        }
    }

    /// Asks the control socket, which opens once the gateway has started, or if that takes long.
    private static func ofRunning(stream: String, path: String, _ configuration: Configuration)
        -> Self
    {
        let client = try? ControlClient(configuration)
        if let client, let status = try? client.status() {
            guard !status.isStarting else { return starting }
            let state = "the running gateway does not know [stream.\(stream)] yet"
            return Self(message: "\(state); `systemctl reload waypost`")
        }
        return client == nil ? starting : silent(path)
    }

    private static let starting = Self(
        message: "waypost is starting; `waypost status` says what it waits for",
        endsByItself: true
    )

    private static func silent(_ path: String) -> Self {
        let state = "waypost is running but does not answer at \(path)"
        return Self(message: "\(state); `waypost status` shows its state", endsByItself: true)
    }
}
