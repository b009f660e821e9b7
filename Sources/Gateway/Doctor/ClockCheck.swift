// Is the time right, and who says so.
internal import Host

struct ClockCheck {
    let input: DoctorInput
    private var files: SystemFiles { input.files }

    var findings: [Finding] {
        let who = client ?? "no NTP client known here"
        if ClockEvidence.systemVouches(stepped: nil) { return [.ok("clock", "synced (\(who))")] }
        if input.report?.clock.state == "synced" {
            return [.ok("clock", "synced by the receiver behind gpsd; \(who)")]
        }
        return [
            .warn(
                "clock",
                "not synced since this boot (\(who)): records are dated when it is",
                next: client == nil
                    ? "`sudo timedatectl set-ntp true`, or give gpsd a receiver with a view of the sky"
                    : "check the network: `timedatectl status`"
            )
        ]
    }

    /// By what each leaves in /run while it is at work.
    private var client: String? {
        let marks = [
            ("/run/systemd/timesync", "systemd-timesyncd"), ("/run/chrony/chronyd.pid", "chrony"),
            ("/run/ntpd.pid", "ntpd"), ("/run/ntpsec", "ntpsec"),
        ]
        return marks.first { files.exists($0.0) }?.1
    }
}
