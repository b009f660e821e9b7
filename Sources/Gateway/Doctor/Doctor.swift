// `doctor`: looks at each part that a field device needs, all at once, each for a limited time.
internal import Audio
internal import Board
internal import Host

/// What the checks are told.
package struct Patient: Sendable {
    package var configuration: Configuration
    package var environment: [String: String]
    package var version: String
    /// A folder in place of `/`, for what is looked up in files.
    package var root = ""
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
        self.environment = environment
        self.version = version
        self.root = root
        do {
            report = try ControlClient(configuration).ask(.init(.status), timeout: .seconds(3))
                .status
        } catch {
            refusal = error as? ControlRefusal
        }
    }
}

/// Runs the checks.
package struct Doctor: Sendable {
    /// Longer than the sum of any check's own limits.
    private static let limit = Duration.seconds(20)

    private let patient: Patient
    private let onLevel: @Sendable (Double) -> Void

    /// `onLevel`: gets the level of sound ten times a second while it is listened to, in dBFS.
    package init(_ patient: Patient, onLevel: @escaping @Sendable (Double) -> Void = { _ in }) {
        self.patient = patient
        self.onLevel = onLevel
    }

    private struct Check: Sendable {
        var part: String
        var findings: @Sendable () -> [Finding]
    }

    /// Blocks for 20 s at most; what is not done by then is a finding itself.
    package func examine() throws -> Examination {
        let checks = checks
        let results = StateBox([[Finding]?](repeating: nil, count: checks.count))
        let done = try Wakeup()
        for (index, check) in checks.enumerated() {
            // Never joined: one that hangs must not keep the command from its end.
            _ = try Lane(check.part) {
                let findings = check.findings()
                results.update { $0[index] = findings }
                done.signal()
            }
        }
        let clock = SystemClock()
        let deadline = clock.now() + Self.limit
        while results.value.contains(where: { $0 == nil }), clock.now() < deadline {
            var entries = [PollEntry(done.descriptor)]
            _ = wait(for: &entries, timeout: max(.zero, deadline - clock.now()))
            done.clear()
        }
        let findings = zip(checks, results.value).flatMap { check, findings in
            findings ?? [
                .fail(
                    check.part,
                    "did not answer in \(Int(Self.limit.milliseconds / 1000)) s",
                    next: "look at what hangs: `dmesg | tail`"
                )
            ]
        }
        return Examination(version: patient.version, checks: findings)
    }

    private var checks: [Check] {
        let patient = patient
        let onLevel = onLevel
        return [
            Check(part: "service") { ServiceCheck(patient).findings },
            Check(part: "disk") { DiskCheck(patient).findings },
            Check(part: "clock") { ClockCheck(patient).findings },
            Check(part: "bluetooth") { BluetoothCheck(patient).findings },
            Check(part: "gpsd") { LocationCheck(patient).findings },
            Check(part: "sound") { SoundCheck(patient, onLevel: onLevel).findings },
            Check(part: "server") { ServerCheck(patient).findings },
        ]
    }
}
