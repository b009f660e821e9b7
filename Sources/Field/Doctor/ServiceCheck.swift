// Checks the service: running, unit, udev rules, user.
import CLinux
import Glibc
import Host
import Setup
import Status

struct ServiceCheck {
    let input: DoctorInput
    private var files: SystemFiles { input.files }

    var findings: [Finding] { [running, unit, rules, user].compactMap { $0 } }

    private static let folders = [
        "/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
    ]

    private var isInstalled: Bool {
        Self.folders.contains { files.exists("\($0)/waypost.service") }
    }

    private var running: Finding {
        guard let report = input.report else {
            if let refusal = input.refusal, refusal.isRunning != false {
                return .fail("gateway", "\(refusal)", next: "`sudo waypost doctor`")
            }
            return .fail(
                "gateway",
                StartErrorFile.read(in: input.configuration.runtimeDirectory)
                    .map { "not running: the last start failed: \($0)" }
                    ?? "not running: nothing answers at \(input.configuration.socketPath)",
                next: isInstalled
                    ? "`systemctl start waypost`, then `journalctl -u waypost`" : "`waypost run`"
            )
        }
        let message = "runs, process \(report.daemon.pid), \(report.state.rawValue)"
        guard let reason = report.reasons.first else { return .ok("gateway", message) }
        return .warn("gateway", "\(message): \(reason)", next: "`waypost status` says more")
    }

    private var unit: Finding {
        guard isInstalled else {
            return .warn(
                "service",
                "waypost.service is not installed",
                next: "`sudo deploy/install`"
            )
        }
        let starts = [
            ("multi-user", "is installed, but does not start at boot", "enable"),
            ("waypost-hotplug", "starts at boot, but not when a device is plugged in", "reenable"),
        ]
        for (target, what, verb) in starts {
            let link = "/etc/systemd/system/\(target).target.wants/waypost.service"
            guard !files.isThere(link) else { continue }
            let next = "`sudo systemctl \(verb) waypost`"
            return .warn("service", "waypost.service \(what)", next: next)
        }
        return .ok("service", "waypost.service starts at boot, and when a device is plugged in")
    }

    private var rules: Finding? {
        guard isInstalled else { return nil }
        let folders = ["/etc/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"]
        guard folders.contains(where: { files.exists("\($0)/70-waypost.rules") }) else {
            return .warn(
                "service",
                "70-waypost.rules is missing: a device that is plugged in does not start the service",
                next: "`sudo deploy/install`"
            )
        }
        return .ok("service", "udev rules are installed")
    }

    private var user: Finding? {
        guard isInstalled else { return nil }
        let entries = (files.text("/etc/passwd") ?? "").split(separator: "\n")
        guard entries.contains(where: { $0.hasPrefix("waypost:") }) else {
            return .fail(
                "service",
                "there is no user waypost, which the service runs as",
                next: "`sudo systemd-sysusers`, or `sudo deploy/install`"
            )
        }
        let groups = (files.text("/etc/group") ?? "").split(separator: "\n")
        let members =
            groups.first { $0.hasPrefix("audio:") }?
            .split(separator: ":", omittingEmptySubsequences: false).last?
            .split(separator: ",") ?? []
        guard members.contains("waypost") else {
            return .fail(
                "service",
                "the user waypost is not in the group audio: it may open no sound card",
                next: "`sudo usermod -aG audio waypost && sudo systemctl restart waypost`"
            )
        }
        return .ok("service", "runs as the user waypost, which is in the group audio")
    }
}
