// The input of the checks of `waypost doctor`.
import Glibc
import Host
import HTTP
package import Setup
package import Status
import Upload

/// The input shared by all checks; a class, so that no check contains code that copies it.
package final class DoctorInput: Sendable {
    package let configuration: Configuration
    /// The command's environment with the gateway's proxies.
    package let environment: [String: String]
    package let version: String
    /// The executable that listens as the service's user if run by root; nil: this process listens.
    let program: String?
    /// False: the microphone is left alone.
    let listens: Bool
    /// A folder in place of `/` for files.
    package let root: String
    var files: SystemFiles { SystemFiles(root: root) }
    /// The gateway's report; nil if it cannot be asked.
    let report: StatusReport?
    /// Why the gateway cannot be asked.
    let refusal: ControlError?

    /// Asks the gateway for its report, unless given as `report`.
    ///
    /// `program`: this executable, which is started again for work that root must not do.
    package init(
        _ configuration: Configuration,
        environment: [String: String],
        version: String,
        root: String = "",
        program: String? = nil,
        listens: Bool = true,
        report: StatusReport? = nil
    ) {
        (self.program, self.listens) = (program, listens)
        self.configuration = configuration
        self.version = version
        self.root = root
        var (report, refusal) = (report, ControlError?.none)
        do {
            report =
                try report
                ?? ControlClient(configuration, patience: Self.patience).status()
        } catch {
            refusal = error as? ControlError
        }
        (self.report, self.refusal) = (report, refusal)
        let own = Self.withCredentials(environment)
        self.environment = Self.withProxies(ofProcess: report?.daemon.pid ?? 0, own)
    }

    /// Returns the environment with the gateway's proxies, as uploads use them.
    ///
    /// Without a gateway, or the right to read its environment, those of the command stay.
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

    /// Sets the gateway's proxies in this process, for libcurl; call before any thread starts.
    package func useProxies() {
        for name in ServerProbe.Proxy.variables {
            if let value = environment[name] { setenv(name, value, 1) } else { unsetenv(name) }
        }
    }

    /// Adds systemd's credential store, if this user may read the service's secrets.
    private static func withCredentials(_ environment: [String: String]) -> [String: String] {
        let store = "/etc/credstore"
        let isThere = [Token.credential, StoreKeys.credential].contains {
            access("\(store)/\($0)", R_OK) == 0
        }
        return isThere
            ? ["CREDENTIALS_DIRECTORY": store].merging(environment) { $1 } : environment
    }

    /// The timeout for the gateway's report; with the longest check everything is done in 8 s.
    static let patience = Duration.seconds(2)
}
