// What the checks of the doctor are told.
internal import Glibc
internal import Host
internal import Requests

/// What the checks are told: one for all of them, for code that copies it would be in each.
package final class DoctorInput: Sendable {
    package let configuration: Configuration
    package let environment: [String: String]
    package let version: String
    /// A folder in place of `/`, for what is looked up in files.
    package let root: String
    var files: SystemFiles { SystemFiles(root: root) }
    /// The gateway's own report; nil while it cannot be asked.
    let report: StatusReport?
    /// Why it cannot be.
    let refusal: ControlRefusal?

    /// Asks the gateway; or `report`: what it has said.
    package init(
        _ configuration: Configuration,
        environment: [String: String],
        version: String,
        root: String = "",
        report: StatusReport? = nil
    ) {
        self.configuration = configuration
        self.environment = Self.withCredentials(environment)
        self.version = version
        self.root = root
        var (report, refusal) = (report, ControlRefusal?.none)
        do {
            report =
                try report
                ?? ControlClient(configuration).ask(.init(.status), timeout: Self.patience).status
        } catch {
            refusal = error as? ControlRefusal
        }
        (self.report, self.refusal) = (report, refusal)
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
