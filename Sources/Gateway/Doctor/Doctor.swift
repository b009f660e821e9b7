// `doctor`: looks at each part that a field device needs, all at once, each for a limited time.
import Audio
import Host
import StatusBoard

/// Runs the checks.
package struct Doctor: Sendable {
    private let input: DoctorInput
    private let onLevel: @Sendable (Double) -> Void

    /// `onLevel`: gets the level of sound ten times a second while it is listened to, in dBFS.
    package init(_ input: DoctorInput, onLevel: @escaping @Sendable (Double) -> Void = { _ in }) {
        self.input = input
        self.onLevel = onLevel
    }

    /// One part, the time that it has, and what to do when that was not enough.
    struct Check: Sendable {
        var part: String
        var limit: Duration
        var next: String
        /// Tells each finding as it is made: what is known before a hang counts.
        var look: @Sendable (_ tell: (Finding) -> Void) -> Void

        /// The finding if the check did not end in time.
        fileprivate var hangs: Finding {
            let seconds = Double(limit.milliseconds) / 1000
            return .fail(part, "did not answer in \(seconds) s", next: next)
        }
    }

    /// Blocks for as long as the check with the longest limit has; what is not done in time is a finding itself.
    package func examine() throws -> Examination {
        Examination(version: input.version, checks: try Self.findings(of: checks))
    }

    static func findings(of checks: [Check]) throws -> [Finding] {
        let results = StateBox(checks.map { _ in Result() })
        let done = try Wakeup()
        for (index, check) in checks.enumerated() {
            // Never joined: one that hangs must not keep the command from its end.
            _ = try OwnThread(check.part) {
                check.look { finding in results.update { $0[index].findings.append(finding) } }
                results.update { $0[index].isDone = true }
                done.signal()
            }
        }
        let clock = SystemClock()
        let began = clock.now()
        // Until each is done or out of its time.
        while let left = zip(checks, results.value).filter({ !$1.isDone }).map(\.0.limit).max(),
            clock.now() - began < left
        {
            var entries = [PollEntry(done.descriptor)]
            _ = wait(for: &entries, timeout: max(.zero, left - (clock.now() - began)))
            done.clear()
        }
        return zip(checks, results.value).flatMap { check, result in
            result.findings + (result.isDone ? [] : [check.hangs])
        }
    }

    private struct Result: Sendable {
        var findings: [Finding] = []
        var isDone = false
    }

    /// All at once, each with time enough for what it waits for and half a second more.
    var checks: [Check] {
        let (input, onLevel) = (input, onLevel)
        return [
            Check("service", 2, Self.disk) { ServiceCheck(input: input).findings },
            Check("disk", 4, Self.disk) { DiskCheck(input: input).findings },
            Check("card", 3, Self.card) { CardCheck(input: input).findings },
            Check("board", 3, Self.card) { BoardCheck(input: input).findings },
            Check("clock", 2, "look at `timedatectl`") { ClockCheck(input: input).findings },
            Check("bluetooth", 5, "look at `dmesg | grep -i blue`") {
                BluetoothCheck(input: input).findings
            },
            Check("gpsd", 5.5, Self.resolver) { LocationCheck(input: input).findings },
            Check("sound", 5.5, "unplug the microphone, and plug it in") {
                SoundCheck(input: input, onLevel: onLevel).findings
            },
            Check(part: "server", limit: .seconds(5.5), next: Self.resolver) { tell in
                ServerCheck(input: input).look(tell)
            },
        ]
    }

    private static let disk = "look at the disk: `dmesg | tail`"
    private static let card = "look at the card: `dmesg | tail`"
    /// Only looking a name up has no limit of its own.
    private static let resolver = "no answer from the name server? `resolvectl status`"
}

extension Doctor.Check {
    /// One whose findings come all together.
    fileprivate init(
        _ part: String,
        _ seconds: Double,
        _ next: String,
        findings: @escaping @Sendable () -> [Finding]
    ) {
        self.init(part: part, limit: .seconds(seconds), next: next) { tell in
            findings().forEach(tell)
        }
    }
}
