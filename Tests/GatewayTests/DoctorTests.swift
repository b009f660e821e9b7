// Checks that read files, over folder trees of other machines.
import Audio
import Foundation
import Glibc
import Host
import StatusBoard
import Support
import Testing

@testable import Daemon
@testable import Field
@testable import Setup
@testable import Status
import Upload

@Suite struct DoctorCheckTests {
    private final class Tree {
        private let temporary = TemporaryFolder()
        var root: String { temporary.path }

        func put(_ path: String, _ text: String = "") throws {
            try temporary.write(text, to: path)
        }

        var input: DoctorInput {
            var configuration = Configuration()
            configuration.runtimeDirectory = root + "/run/waypost"
            return DoctorInput(configuration, environment: [:], version: "test", root: root)
        }
    }

    private func lines(_ findings: [Finding]) -> [String] {
        findings.map { "\($0.state.rawValue) \($0.part)" }
    }

    /// The output is sent to helpers, so it must hold no secret.
    @Test func passwordOfACaster_isNotSaid() throws {
        let (listener, port) = listening()
        defer { close(listener) }
        Thread.detachNewThread {
            let client = accept(listener, nil, nil)
            let device = #"{"class":"DEVICE","path":"ntrip://anna:se@cret@caster.example/M"}"#
            let lines = [#"{"class":"DEVICES","devices":[\#(device)]}"#, device]
            let text = Array(lines.map { $0 + "\r\n" }.joined().utf8)
            _ = send(client, text, text.count, Int32(MSG_NOSIGNAL))
            close(client)
        }
        let look = try GPSDProbe(HostPort(host: "127.0.0.1", port: port), limit: .seconds(20))
        #expect(look.receivers.map(\.path) == ["ntrip://…@caster.example/M"])
    }

    /// The listening process has no access to root's terminal, and its output cannot control it.
    @Test(.enabled(if: geteuid() == 0))
    func listener_isDetachedFromTerminal_withPlainOutput() throws {
        let folder = TemporaryFolder("state")
        let nobody: uid_t = 65_534
        try #require(chown(folder.path + "/state", nobody, nobody) == 0)
        try #require(chmod(folder.path, 0o755) == 0)
        let program = try folder.write(
            #"""
            #!/bin/sh
            ends="$(readlink /proc/$$/fd/0) $(readlink /proc/$$/fd/2)"
            session=$(cut -d' ' -f6 /proc/$$/stat)
            [ "$session" = $$ ] && ends="$ends alone"
            echo '{"level":1e300}'
            printf '{"message":"%su001b[2J%s as %s"}\n' '\' "$ends" "$(id -u)"

            """#,
            to: "listen",
            mode: 0o755
        )
        var configuration = Configuration()
        configuration.stateDirectory = folder.path + "/state"
        configuration.runtimeDirectory = folder.path
        let input = DoctorInput(
            configuration,
            environment: [:],
            version: "test",
            program: program
        )
        var levels: [Double] = []
        let heard = Result { try AudioListener(input: input).listen { levels.append($0) } }
        var failure: Failure?
        if case .failure(let found) = heard { failure = found as? Failure }
        #expect(failure?.message == "[2J/dev/null /dev/null alone as 65534")
        #expect(levels.count == 1 && levels.allSatisfy { $0 <= 200 })
    }

    @Test func deviceNameOfTheListener_isPlain() throws {
        let pipe = Pipe()
        let line =
            #"{"heard":{"device":"mic\u001b[2J","average":-1e300,"peak":0,"has_signal":true,"#
            + #""clipped":0,"device_rate":1}}"#
        try pipe.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
        let number = pipe.fileHandleForReading.fileDescriptor
        let heard = try AudioReport.read(from: number) { _ in }
        #expect(heard.device == "mic[2J")
        #expect(heard.average == -200)
    }

    /// Root must not open a file that the directory's owner has put in place of the database.
    @Test func databaseThatIsALinkOrAPipe_isNotOpened() throws {
        let folder = TemporaryFolder("link", "pipe")
        let (link, pipe) = (folder.path + "/link", folder.path + "/pipe")
        symlink(try folder.write("not theirs", to: "secret"), link + "/queue.sqlite")
        mkfifo(pipe + "/queue.sqlite", 0o600)
        for directory in [link, pipe] {
            var configuration = Configuration()
            configuration.stateDirectory = directory
            configuration.runtimeDirectory = folder.path
            let input = DoctorInput(configuration, environment: [:], version: "test")
            let finding = DiskCheck(input: input).findings.last
            #expect(
                finding?.what
                    == "\(directory)/queue.sqlite is not a regular file and was not opened"
            )
            #expect(finding?.state == .fail)
        }
    }

    /// Root reads what the service's user may not even open.
    @Test(.enabled(if: geteuid() == 0))
    func databaseOfRoot_inTheServicesFolder_fails() throws {
        let folder = TemporaryFolder()
        var configuration = Configuration()
        configuration.stateDirectory = folder.path
        configuration.runtimeDirectory = folder.path
        let database = try folder.write("", to: "queue.sqlite")
        let nobody: uid_t = 65_534
        chown(folder.path, nobody, nobody)
        let input = DoctorInput(configuration, environment: [:], version: "test")
        let finding = try #require(DiskCheck(input: input).findings.last)
        #expect(finding.state == .fail)
        #expect(finding.what.contains("queue.sqlite belongs to another user"), "\(finding)")
        chown(database, nobody, nobody)
        #expect(DiskCheck(input: input).findings.last?.what.contains("another user") == false)
    }

    @Test(.enabled(if: geteuid() == 0))
    func tokenThatOnlyRootCanRead_fails() throws {
        let folder = TemporaryFolder("state")
        var configuration = Configuration()
        configuration.stateDirectory = folder.path + "/state"
        configuration.runtimeDirectory = folder.path
        configuration.upload.endpoint = "http://127.0.0.1:1/api/ingest"
        let token = try folder.write("token\n", to: "token", mode: 0o600)
        configuration.upload.tokenFile = token
        let nobody: uid_t = 65_534
        chown(configuration.stateDirectory, nobody, nobody)
        func finding() -> Finding? {
            var found: [Finding] = []
            let input = DoctorInput(configuration, environment: [:], version: "test")
            ServerCheck(input: input).look { found.append($0) }
            return found.last { $0.part == "token" }
        }
        #expect(finding()?.state == .fail)
        #expect(
            finding()?.what.contains("chown 65534:65534 \(token)") == true,
            "\(finding() as Any)"
        )
        chown(token, nobody, nobody)
        #expect(finding()?.state == .ok)
    }

    @Test func service_installedAsItShouldBe_isOk() throws {
        let tree = Tree()
        try tree.put("/usr/lib/systemd/system/waypost.service")
        try tree.put("/etc/systemd/system/multi-user.target.wants/waypost.service")
        try tree.put("/etc/systemd/system/waypost-hotplug.target.wants/waypost.service")
        try tree.put("/usr/lib/udev/rules.d/70-waypost.rules")
        try tree.put(
            "/etc/passwd",
            "root:x:0:0::/root:/bin/sh\nwaypost:x:990:990::/var/lib/waypost:/sbin/nologin\n"
        )
        try tree.put("/etc/group", "audio:x:29:pi,waypost\nwaypost:x:990:\n")
        let findings = ServiceCheck(input: tree.input).findings
        #expect(lines(findings) == ["fail gateway", "ok service", "ok service", "ok service"])
    }

    @Test(arguments: [(2015, true, "warn"), (2027, true, "ok"), (2027, false, "warn")])
    func clock_isSynced_whereADateOfBeforeTheReleaseIsNone(
        year: Int,
        isVouchedFor: Bool,
        state: String
    ) throws {
        let wall = try #require(WallTime(rfc3339: "\(year)-03-01T00:00:00Z"))
        let now = Stamp(boot: BootInstant(nanoseconds: 1), wall: wall)
        let check = ClockCheck(
            input: Tree().input,
            clock: ManualClock(now),
            isVouchedFor: isVouchedFor
        )
        let finding = try #require(check.findings.first)
        #expect(finding.state.rawValue == state)
        #expect(finding.what.contains("2015-03-01") == (year == 2015))
    }

    /// chrony follows a GNSS receiver with a week rollover; records are dated by an earlier or
    /// another source.
    @Test(arguments: [(true, "warn"), (false, "ok")])
    func clockSyncedToPast_isWrong_thoughRecordsAreDated(
        isVouchedFor: Bool,
        state: String
    ) throws {
        let tree = Tree()
        var input = tree.input
        var report = Snapshot.nothing(input.configuration, version: "test")
        report.clock.state = .synced
        input = DoctorInput(
            input.configuration,
            environment: [:],
            version: "test",
            root: tree.root,
            report: report
        )
        let wall = try #require(WallTime(rfc3339: "2007-04-08T00:00:00Z"))
        let check = ClockCheck(
            input: input,
            clock: ManualClock(Stamp(boot: BootInstant(nanoseconds: 1), wall: wall)),
            isVouchedFor: isVouchedFor
        )
        #expect(lines(check.findings) == ["\(state) clock"])
        #expect(check.findings.first?.what.contains("2007-04-08") == isVouchedFor)
    }

    @Test func service_inHalves_isNamedPartByPart() throws {
        let tree = Tree()
        try tree.put("/etc/systemd/system/waypost.service")
        try tree.put("/etc/passwd", "waypost:x:990:990::/:/sbin/nologin\n")
        try tree.put("/etc/group", "audio:x:29:pi\n")
        let findings = ServiceCheck(input: tree.input).findings
        #expect(
            lines(findings) == ["fail gateway", "warn service", "warn service", "fail service"]
        )
        #expect(findings.last?.next?.contains("usermod -aG audio waypost") == true)
        #expect(findings.first?.next?.contains("systemctl start waypost") == true)
    }

    @Test(arguments: [("1", "0", "soft"), ("0", "1", "hard"), ("0", "0", nil)])
    func adapter_thatIsBlocked_isNamed(soft: String, hard: String, lock: String?) throws {
        let tree = Tree()
        try tree.put("/sys/class/bluetooth/hci0/address", "aa")
        try tree.put("/sys/class/bluetooth/hci0:12/address", "a connection")
        try tree.put("/sys/class/rfkill/rfkill0/name", "phy0\n")
        try tree.put("/sys/class/rfkill/rfkill0/soft", "1\n")
        try tree.put("/sys/class/rfkill/rfkill1/name", "hci0\n")
        try tree.put("/sys/class/rfkill/rfkill1/soft", soft + "\n")
        try tree.put("/sys/class/rfkill/rfkill1/hard", hard + "\n")
        let findings = BluetoothCheck(input: tree.input).findings
        if let lock {
            #expect(findings.map(\.what) == ["hci0 is blocked (rfkill, \(lock))"])
        } else {
            // The process is not in the tree: its capabilities are unknown.
            #expect(lines(findings) == ["ok bluetooth", "warn bluetooth"])
        }
        #expect(
            DeviceList(tree.input.configuration, root: tree.root).bluetooth.map(\.name) == [
                "hci0"
            ]
        )
    }

    @Test(arguments: [("CapEff:\t0000000000003000", "ok"), ("CapEff:\t0000000000001000", "warn")])
    func rights_areThoseOfTheProcess(line: String, state: String) throws {
        let tree = Tree()
        try tree.put("/sys/class/bluetooth/hci0/address", "aa")
        try tree.put("/proc/self/status", "Name:\twaypost\n\(line)\n")
        #expect(BluetoothCheck(input: tree.input).findings.last?.state.rawValue == state)
    }

    @Test func service_thatNoDeviceStarts_isNamed() throws {
        let tree = Tree()
        try tree.put("/usr/lib/systemd/system/waypost.service")
        try tree.put("/etc/systemd/system/multi-user.target.wants/waypost.service")
        let findings = ServiceCheck(input: tree.input).findings
        #expect(findings.contains { $0.next?.contains("systemctl reenable waypost") == true })
    }

    @Test func partThatHangs_isNamed_andHoldsNoOtherUp() throws {
        let stop = try StopSignal()
        defer { stop.raise() }
        let checks = [
            Doctor.Check(part: "sound", limit: .seconds(1), next: "unplug it") {
                $0(.ok("sound", "is there"))
                _ = stop.sleep(for: .seconds(3600))
            },
            Doctor.Check(part: "disk", limit: .seconds(60), next: "") {
                $0(.ok("disk", "fine"))
            },
        ]
        #expect(
            try Doctor.findings(of: checks) == [
                .ok("sound", "is there"),
                .fail("sound", "did not answer in 1.0 s", next: "unplug it"), .ok("disk", "fine"),
            ]
        )
    }

    /// The longest total time: the gateway's answer plus the check with the longest timeout.
    @Test func limits_leaveEightSecondsInAll() throws {
        let tree = Tree()
        let longest = Doctor(tree.input).checks.map(\.limit).max() ?? .seconds(100)
        #expect(DoctorInput.patience + longest <= .seconds(7.5))
    }

    @Test func examination_isAsBadAsItsWorstPart_andWrapsItsLines() {
        let long = String(repeating: "word ", count: 40)
        let examination = Examination(
            version: "1",
            checks: [.ok("disk", "fine"), .warn("clock", long, next: long)]
        )
        #expect(examination.state == .degraded)
        let text = examination.text(isColoured: false)
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(text.hasSuffix("\n\n1 to look at\n"))
        #expect(!text.contains("\u{1B}"))
    }
}

@Suite struct CertificateEndTests {
    /// Hours that a certificate lives, hours left of them, and the days that the warning tells.
    private static let cases: [(life: Int64, left: Int64, reported: Int64?)] = [
        (90 * 24, 14 * 24 + 1, nil), (90 * 24, 14 * 24, 14), (90 * 24, 1, 0), (12, 3, nil),
        (12, 2, 0),
    ]

    @Test(arguments: cases) func warning_comesWhereARenewalIsOverdue(
        life: Int64,
        left: Int64,
        reported: Int64?
    ) {
        let now = WallTime.release
        let start = now + .seconds((left - life) * 3600)
        #expect(ServerCheck.late(start...now + .seconds(left * 3600), at: now) == reported)
    }
}
