// What the checks of the doctor are told.
import Glibc
import Host
import HTTP
import Upload

/// What the checks are told: one for all of them, for code that copies it would be in each.
package final class DoctorInput: Sendable {
    package let configuration: Configuration
    /// That of the command, but for proxies, which are those of the gateway.
    package let environment: [String: String]
    package let version: String
    /// The executable that listens as the service's user where root asks; nil: this process listens itself.
    let program: String?
    /// A folder in place of `/`, for what is looked up in files.
    package let root: String
    var files: SystemFiles { SystemFiles(root: root) }
    /// The gateway's own report; nil while it cannot be asked.
    let report: StatusReport?
    /// Why it cannot be.
    let refusal: ControlRefusal?

    /// Asks the gateway; or `report`: what it has said.
    ///
    /// `program`: this executable, which is started once more for what root must not do.
    package init(
        _ configuration: Configuration,
        environment: [String: String],
        version: String,
        root: String = "",
        program: String? = nil,
        report: StatusReport? = nil
    ) {
        self.program = program
        self.configuration = configuration
        self.version = version
        self.root = root
        var (report, refusal) = (report, ControlRefusal?.none)
        do {
            report =
                try report
                ?? ControlClient(configuration, patience: Self.patience).status()
        } catch {
            refusal = error as? ControlRefusal
        }
        (self.report, self.refusal) = (report, refusal)
        let own = Self.withCredentials(environment)
        self.environment = Self.withProxies(ofProcess: report?.daemon.pid ?? 0, own)
    }

    /// Uploads go through the proxies that the gateway's environment names; without a gateway, or the right to read its
    /// environment, through those of the command.
    private static func withProxies(
        ofProcess pid: Int,
        _ own: [String: String]
    ) -> [String: String] {
        guard pid > 0, let text = SmallText.read("/proc/\(pid)/environ", limit: 1 << 20) else {
            return own
        }
        var environment = own
        for name in ServerProbe.Proxy.variables { environment[name] = nil }
        for entry in text.split(separator: "\0") {
            guard let end = entry.firstIndex(of: "=") else { continue }
            let name = String(entry[..<end])
            guard ServerProbe.Proxy.variables.contains(name) else { continue }
            environment[name] = String(entry[entry.index(after: end)...])
        }
        return environment
    }

    /// Has this process, and libcurl in it, use the gateway's proxies; while it has no other thread.
    package func useProxies() {
        for name in ServerProbe.Proxy.variables {
            if let value = environment[name] { setenv(name, value, 1) } else { unsetenv(name) }
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
