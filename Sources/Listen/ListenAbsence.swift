// Explains why a program cannot listen.
import Audio
import Glibc
import Host
import JSON
import Setup
import Status

enum ListenAbsence {
    /// Returns why nothing answers at the listen socket, with the remedy.
    static func message(
        _ error: SystemError,
        path: String,
        _ configuration: Configuration
    ) -> String {
        switch error.code {
        case EACCES, EPERM:
            return "\(path): this user has no right to it; `sudo usermod -aG waypost $USER`, "
                + "then log in again"
        case ENOENT, ECONNREFUSED:
            guard configuration.audio.isEnabled else {
                return "audio is not recorded (audio.enabled = false); set it to true, "
                    + "then `systemctl reload waypost`"
            }
            guard case .running = DaemonPresence(stateDirectory: configuration.stateDirectory)
            else {
                return "waypost is not running (nothing answers at \(path)); "
                    + "`systemctl start waypost`"
            }
            return "nothing answers at \(path); `waypost status` shows whether waypost is starting"
        default: return "\(error); `waypost status` shows the state of the gateway"
        }
    }

    private struct Refusal: Decodable { var error: String }

    /// Returns the reason if the gateway has refused this program.
    static func refusal(_ line: [UInt8]) -> String? {
        let refusal: Refusal? = try? JSONInput.decode(from: line)
        return refusal?.error.plainWords(atMost: 300)
    }
}
