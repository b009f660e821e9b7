// What the checks of the doctor are told.
internal import Glibc
internal import Host
internal import Requests

/// What the checks are told.
package struct DoctorInput: Sendable {
    package var configuration: Configuration
    package var environment: [String: String]
    package var version: String
    /// A folder in place of `/`, for what is looked up in files.
    package var root = ""
    var files: SystemFiles { SystemFiles(root: root) }
    /// The gateway's own report; nil while it cannot be asked.
    var report: StatusReport?
    /// Why it cannot be.
    var refusal: ControlRefusal?

    package init(
        _ configuration: Configuration,
        environment: [String: String],
        version: String,
        root: String = ""
    ) {
        self.configuration = configuration
        self.environment = Self.withCredentials(environment)
        self.version = version
        self.root = root
        do {
            report = try ControlClient(configuration).ask(.init(.status), timeout: Self.patience)
                .status
        } catch {
            refusal = error as? ControlRefusal
        }
    }

    /// The secrets that systemd gives to the service, for a person who may read them.
    private static func withCredentials(_ environment: [String: String]) -> [String: String] {
        let store = "/etc/credstore"
        let isThere = [Token.credential, StoreKeys.credential].contains {
            access("\(store)/\($0)", R_OK) == 0
        }
        return isThere
            ? ["CREDENTIALS_DIRECTORY": store].merging(environment) { $1 } : environment
    }

    /// It answers within a second; with this and the longest check it is all done in 8 s.
    static let patience = Duration.seconds(2)
}
