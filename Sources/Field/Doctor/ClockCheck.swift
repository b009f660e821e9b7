// Checks that the clock is synchronized, and by which source.
import Host
import Status

struct ClockCheck {
    let input: DoctorInput
    var clock: any HostClock = SystemClock()
    var isVouchedFor = ClockEvidence.systemVouches(stepped: nil)
    private var files: SystemFiles { input.files }

    var findings: [Finding] { [finding] }

    private var finding: Finding {
        let who = client ?? "no NTP client known here"
        let wall = clock.wall()
        if let contradiction = input.report?.clock.contradiction {
            return .warn(
                "clock",
                contradiction,
                next:
                    "compare the time server (`timedatectl timesync-status`, `chronyc sources`) with "
                    + "`gpspipe -w -n 10`"
            )
        }
        if isVouchedFor, wall >= .release { return .ok("clock", "synced (\(who))") }
        if isVouchedFor {
            let day = wall.rfc3339.prefix(10)
            return .warn(
                "clock",
                "synced to \(day), which is before this release: not believed (\(who))",
                next:
                    "the time server is wrong, often the router, or a GNSS receiver that is a week "
                    + "rollover behind: give NTP another one"
            )
        }
        if input.report?.clock.state == .synced {
            return .ok("clock", "synced by the GNSS receiver behind gpsd; \(who)")
        }
        return .warn(
            "clock",
            "not synced since this boot (\(who)): records get their dates once it is",
            next: client == nil
                ? "`sudo timedatectl set-ntp true`, or give gpsd a GNSS receiver with a view of the sky"
                : "check the network: `timedatectl status`"
        )
    }

    /// The NTP client, found by the file that each has in /run while it is running.
    private var client: String? {
        let marks = [
            ("/run/systemd/timesync", "systemd-timesyncd"), ("/run/chrony/chronyd.pid", "chrony"),
            ("/run/ntpd.pid", "ntpd"), ("/run/ntpsec", "ntpsec"),
        ]
        return marks.first { files.exists($0.0) }?.1
    }
}
