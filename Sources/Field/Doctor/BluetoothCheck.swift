// Checks the Bluetooth adapter: present, not blocked, permitted.
import Beacons
import CLinux
import Configuration
import Glibc
import Host
import Setup
import Status
import StatusBoard

struct BluetoothCheck {
    let input: DoctorInput
    private var files: SystemFiles { input.files }

    var findings: [Finding] {
        guard input.configuration.beacons.isEnabled else {
            return [.ok("bluetooth", "off (beacons.enabled = false)")]
        }
        switch input.configuration.beacons.source {
        case .adapter(let number): return adapter(number)
        case .controller(let address): return [controller(address)]
        case .capture(let path):
            guard access(path, R_OK) == 0 else {
                let why = String(cString: strerror(errno))
                return [.fail("bluetooth", "\(path): \(why)", next: "check beacons.source")]
            }
            return [.ok("bluetooth", "\(path) is replayed, no radio is used")]
        }
    }

    private func controller(_ address: HostPort) -> Finding {
        if let message = heard { return .ok("bluetooth", "\(address): \(message)") }
        do {
            let stop = try StopSignal()
            _ = try TCP.connect(
                host: address.host,
                port: address.port,
                timeout: .seconds(2),
                until: stop
            )
            return .ok("bluetooth", "the controller at \(address) answers")
        } catch {
            return .fail(
                "bluetooth",
                "h4:\(error)",
                next: "start the controller, or check beacons.source"
            )
        }
    }

    /// The reception of a running gateway, or nil.
    ///
    /// A controller over TCP accepts one host at a time, so this is a better test than connecting.
    private var heard: String? {
        guard let source = input.report?.sources["beacons"], source.state == .loaded else {
            return nil
        }
        return "the gateway receives \(source.ratePerS) beacons per second"
    }

    // MARK: An adapter of this machine

    private func adapter(_ number: Int) -> [Finding] {
        let name = "hci\(number)"
        let here = Adapters.names(files)
        guard here.contains(name) else {
            if let problem = socketProblem { return [problem] }
            let others =
                here.isEmpty ? "no adapter is here" : "here: \(here.joined(separator: ", "))"
            let next =
                here.isEmpty
                ? "plug one in, or look for its firmware: `dmesg | grep -i bluetooth`"
                : "set beacons.source to one of them"
            return [.fail("bluetooth", "\(name) is not here (\(others))", next: next)]
        }
        if let lock = Adapters.block(of: name, files) {
            let next = lock == "hard" ? "turn its switch on" : "`sudo rfkill unblock bluetooth`"
            return [.fail("bluetooth", "\(name) is blocked (rfkill, \(lock))", next: next)]
        }
        return [.ok("bluetooth", "\(name) is here, not blocked" + (heard.map { "; \($0)" } ?? ""))]
            + [rights]
    }

    private var socketProblem: Finding? {
        let number = socket(
            AF_BLUETOOTH,
            Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
            1
        )
        let code = errno
        if number >= 0 { close(number) }
        guard number < 0, code == EAFNOSUPPORT || code == EPROTONOSUPPORT else { return nil }
        return .fail(
            "bluetooth",
            "this kernel has no Bluetooth",
            next: "`sudo modprobe bluetooth`; or set beacons.source, or beacons.enabled = false"
        )
    }

    /// CAP_NET_ADMIN is bit 12, CAP_NET_RAW 13 (linux/capability.h).
    private static let needed: UInt64 = 1 << 12 | 1 << 13

    /// Checks the capabilities of the gateway, or of this process if it is not running.
    private var rights: Finding {
        let pid = input.report.map { "\($0.daemon.pid)" }
        let who = pid == nil ? "you have" : "the gateway has"
        guard files.capabilities(of: pid ?? "self") & Self.needed != Self.needed else {
            return .ok("bluetooth", "\(who) CAP_NET_RAW and CAP_NET_ADMIN")
        }
        let next = "run it by its service, which has them: `sudo systemctl start waypost`"
        let message = "\(who) not CAP_NET_RAW and CAP_NET_ADMIN"
        return pid == nil
            ? .warn("bluetooth", message, next: next) : .fail("bluetooth", message, next: next)
    }
}

/// Bluetooth adapters in /sys.
enum Adapters {
    static func names(_ files: SystemFiles) -> [String] {
        files.names(in: "/sys/class/bluetooth").filter { $0.hasPrefix("hci") && !$0.contains(":") }
    }

    /// Returns `hard` or `soft` if rfkill blocks the adapter, else nil.
    static func block(of adapter: String, _ files: SystemFiles) -> String? {
        for entry in files.names(in: "/sys/class/rfkill") {
            let folder = "/sys/class/rfkill/\(entry)"
            guard files.text(folder + "/name") == adapter else { continue }
            if files.text(folder + "/hard") == "1" { return "hard" }
            if files.text(folder + "/soft") == "1" { return "soft" }
        }
        return nil
    }
}
