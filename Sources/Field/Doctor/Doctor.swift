// `waypost doctor`: checks each part of a field device concurrently, each with a timeout.
import Audio
import Host
import StatusBoard

/// Runs all checks.
package struct Doctor: Sendable {
    private let input: DoctorInput
    private let onLevel: @Sendable (Double) -> Void

    /// `onLevel` is called with the sound level in dBFS, ten times per second while listening.
    package init(_ input: DoctorInput, onLevel: @escaping @Sendable (Double) -> Void = { _ in }) {
        self.input = input
        self.onLevel = onLevel
    }

    /// A check of one part, its timeout, and the remedy for a timeout.
    struct Check: Sendable {
        var part: String
        var limit: Duration
        var next: String
        /// Reports each finding as it is made, so that those before a hang count.
        var look: @Sendable (_ report: (Finding) -> Void) -> Void

        /// The finding for a timeout.
        fileprivate var hangs: Finding {
            let seconds = Double(limit.milliseconds) / 1000
            return .fail(part, "did not answer in \(seconds) s", next: next)
        }
    }

    /// Runs all checks and blocks at most for the longest timeout; a timeout is a finding.
    package func examine() throws -> Examination {
        Examination(version: input.version, checks: try Self.findings(of: checks))
    }

    static func findings(of checks: [Check]) throws -> [Finding] {
        let results = StateBox(checks.map { _ in Result() })
        let done = try Wakeup()
        for (index, check) in checks.enumerated() {
            // Never joined: a hung check must not block the command.
            _ = try OwnThread(check.part) {
                check.look { finding in results.update { $0[index].findings.append(finding) } }
                results.update { $0[index].isDone = true }
                done.signal()
            }
        }
        let clock = SystemClock()
        let began = clock.now()
        // Until each check is done or has timed out.
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

    /// All checks; each timeout is half a second longer than what the check itself waits for.
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
                AudioCheck(input: input, onLevel: onLevel).findings
            },
            Check(part: "server", limit: .seconds(5.5), next: Self.resolver) { report in
                ServerCheck(input: input).look(report)
            },
        ]
    }

    private static let disk = "look at the disk: `dmesg | tail`"
    private static let card = "look at the card: `dmesg | tail`"
    /// The remedy for a DNS lookup, which alone has no timeout.
    private static let resolver = "no answer from the name server? `resolvectl status`"
}

extension Doctor.Check {
    /// Creates a check that returns all findings at once.
    fileprivate init(
        _ part: String,
        _ seconds: Double,
        _ next: String,
        findings: @escaping @Sendable () -> [Finding]
    ) {
        self.init(part: part, limit: .seconds(seconds), next: next) { report in
            findings().forEach(report)
        }
    }
}
