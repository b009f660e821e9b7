// Upgrades over a real queue and a real file, with kills between the steps.
import Foundation
import Host
import Minisign
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

@testable import Remote

@Suite struct UpgradeTrialTests {
    /// A machine: its gateway of one version, and what root's unit wrote.
    private final class Machine: JobGateway, UpgradeDevice {
        let folder: String
        let content = Locked("")
        let settings = Locked(RemoteSettings())
        let program = Locked("0.1.0")
        let why = Locked(String?.none)
        let root = Locked(String?.none)
        let requests = Locked([String]())
        let good = Locked([String]())
        let uploads = Locked(0)
        let recordsHealth = Locked(false)
        let numbers = Locked(["audio": Int64(1)])
        let observation = Locked(SettingsGate.Observation(passed: .seconds(60)))
        let warnings = Locked([String]())

        init(_ folder: String) {
            self.folder = folder
            settings.update { $0.allow = ["upgrade"] }
        }

        var remote: RemoteSettings { settings.value }
        var interval: Duration { .milliseconds(1) }
        var deviceID: String { "hut-1" }
        var version: String { program.value }
        var obstacle: String? { why.value }
        var newest: [String: Int64] { numbers.value }
        var result: String? { root.value }

        func fetch(until stop: StopSignal) -> [UInt8]? { Array(content.value.utf8) }
        func perform(_ action: RemoteJob.Action, until stop: StopSignal) -> JobOutcome? {
            JobOutcome(.done)
        }
        func uploadReplies() {}
        func publish(_ reply: JobReply) {}
        func warn(_ what: String) { warnings.update { $0.append(what) } }

        func before() -> SettingsGate.Before {
            .init(
                healthy: ["audio"],
                newest: newest,
                intervalMs: 60_000,
                newIntervalMs: 60_000,
                judgesUploads: false
            )
        }
        func observe(
            since: BootInstant,
            _ before: SettingsGate.Before
        ) -> SettingsGate.Observation {
            var now = observation.value
            now.newest = newest
            return now
        }
        func read() throws -> StoredUpgrade? { try StoredUpgrade.read(in: folder) }
        func write(_ stored: StoredUpgrade) throws { try stored.write(in: folder) }
        func request(_ version: String) throws { requests.update { $0.append(version) } }
        func declareGood(_ version: String) throws { good.update { $0.append(version) } }
        func recordHealth(_ isOn: Bool) { recordsHealth.update { $0 = isOn } }
        func upload() { uploads.update { $0 += 1 } }
    }

    /// One life of a process, whose turns the test takes itself.
    private final class Life {
        let queue: Queue
        private let machine: Machine
        private let offers: OfferedJobs
        private let clock = ManualClock(
            Stamp(boot: BootInstant(nanoseconds: 1), wall: .release)
        )
        private var runner: JobRunner
        private let stop: StopSignal

        init(_ machine: Machine) throws {
            queue = try Queue(at: "\(machine.folder)/queue.sqlite", clock: SystemClock())
            (self.machine, offers, stop) = (machine, try OfferedJobs(), try StopSignal())
            let upgrade = UpgradeTrial(machine, clock)
            runner = JobRunner(queue, clock, offers, machine, upgrade: upgrade)
            runner.restore()
        }

        /// Offers a job and takes a turn.
        @discardableResult func turn(
            _ tag: String,
            _ version: String,
            signature: String? = nil
        ) throws -> Duration? {
            var job = ["id": tag, "kind": "upgrade", "version": version]
            job["signature"] = signature
            let list: [String: Any] = ["tag": tag, "jobs": [job]]
            let bytes = try JSONSerialization.data(withJSONObject: list)
            machine.content.update { $0 = String(decoding: bytes, as: UTF8.self) }
            offers.offer(tag)
            return turn()
        }

        @discardableResult func turn(after seconds: Int64 = 60) -> Duration? {
            clock.advance(by: .seconds(seconds))
            return runner.turn(until: stop)
        }
    }

    private let temporary = TemporaryFolder()
    private var machine: Machine { Machine(temporary.path) }
    private static let wanted = "{\"version\":\"0.2.0\"}"

    /// Returns job, state, message and members of each reply.
    private func replies() throws -> [String] {
        let path = "\(temporary.path)/queue.sqlite"
        let connection = try Connection(path: path, access: .readOnly)
        let row = try connection.prepare(
            "SELECT job, state, message, detail FROM replies ORDER BY id"
        )
        return try row.compactMap { row in (0..<4).map { row.text($0) }.joined(separator: " ") }
    }

    @Test(arguments: [
        "0", "0.1.0", "0.2.0~rc1", "1:0.2.0-1+b1", "12:3.4-5.6~x",
        "0." + String(repeating: "1", count: 62),
    ]) func versions_ofDebian(_ text: String) { #expect(UpgradeOffer.isVersion(text)) }

    @Test(arguments: [
        "", "a", "-1", "~1", "+1", ".1", ":1", "a:1", "1:", "1:2:3", "1:-2", "0.1 0", "0.1;reboot",
        "0.1\n", "\n0.1", "0.1/..", "0.1\u{0}", "0.1*", "0.1=2", "0.1_1", "0.1ü", "0.1[", "0.1@",
        "0.1`",
        "0.1{", "$(id)", "0." + String(repeating: "1", count: 63),
    ]) func otherTexts_areNotVersions(_ text: String) {
        #expect(!UpgradeOffer.isVersion(text))
    }

    @Test func upstream_lacksEpochAndRevision() {
        #expect(UpgradeOffer.upstream(of: "0.2.0") == "0.2.0")
        #expect(UpgradeOffer.upstream(of: "1:0.2.0~rc-1-2") == "0.2.0~rc-1")
    }

    /// The old program asks, the new one declares itself good, and answers with the result.
    @Test func upgrade_isAskedFor_triedAndKept() throws {
        let machine = machine
        let old = try Life(machine)
        #expect(try old.turn("u1", "0.2.0") == .seconds(30))
        #expect(machine.requests.value == ["0.2.0"])
        #expect(try replies() == ["u1 trial  \(Self.wanted)"])
        old.turn()
        #expect(machine.good.value.isEmpty && machine.uploads.value == 0)
        machine.numbers.update { $0["audio"] = 7 }
        old.queue.close()
        machine.program.update { $0 = "0.2.0" }
        let new = try Life(machine)
        defer { new.queue.close() }
        machine.observation.update { ($0.isAccepted, $0.sources["audio"]) = (true, .collects) }
        for _ in 0..<5 { new.turn() }
        // The old program's records do not count.
        #expect(machine.good.value.isEmpty && machine.recordsHealth.value)
        // Wake-ups by answers cause no uploads.
        let uploads = machine.uploads.value
        for _ in 0..<9 { new.turn(after: 1) }
        #expect(machine.uploads.value == uploads)
        machine.numbers.update { $0["audio"] = 8 }
        new.turn()
        #expect(machine.good.value == ["0.2.0"])
        machine.root.update { $0 = "0.2.0\nkept\nx\n" }
        #expect(new.turn() == nil)
        new.turn()
        #expect(try replies() == ["u1 trial  \(Self.wanted)", "u1 kept  \(Self.wanted)"])
        #expect(!machine.recordsHealth.value && machine.requests.value == ["0.2.0"])
    }

    @Test(arguments: ["rolled_back", "refused", "failed"])
    func resultOfRoot_isAnsweredOnce(_ state: String) throws {
        let machine = machine
        let old = "0.2.0\nrefused not offered\n1\n"
        machine.root.update { $0 = old }
        let first = try Life(machine)
        try first.turn("u1", "0.2.0")
        // The result of another upgrade, and texts that are not a result.
        for text in [old, "0.3.0\nkept\n", "0.2.0\n", "0.2.0\ndone x\n", "", "0.2.0\ntrial\n"] {
            machine.root.update { $0 = text }
            first.turn()
        }
        #expect(try replies().count == 1)
        machine.root.update { $0 = "0.2.0\n\(state) it \u{1B}[2J crashed\n2\n" }
        first.queue.close()
        for _ in 0..<2 {
            let next = try Life(machine)
            next.turn()
            next.turn()
            next.queue.close()
        }
        #expect(
            try replies() == [
                "u1 trial  \(Self.wanted)", "u1 \(state) it [2J crashed \(Self.wanted)",
            ]
        )
        // The next one is not held up.
        let last = try Life(machine)
        try last.turn("u2", "0.3.0")
        last.queue.close()
        #expect(machine.requests.value == ["0.2.0", "0.3.0"])
    }

    @Test func refusals_sayWhy_andAskForNothing() throws {
        let machine = machine
        let life = try Life(machine)
        defer { life.queue.close() }
        try life.turn("a", "0.2.0; reboot")
        machine.settings.update { $0.allow = ["operate", "settings"] }
        try life.turn("b", "0.2.0")
        machine.settings.update { $0.allow = ["upgrade"] }
        machine.why.update { $0 = "no unit" }
        try life.turn("c", "0.2.0")
        machine.why.update { $0 = nil }
        #expect(machine.requests.value.isEmpty)
        try life.turn("d", "0.2.0")
        // Nothing else is done until the upgrade is over: a restart may come at any time.
        #expect(try life.turn("e", "0.3.0") == .seconds(60))
        #expect(machine.requests.value == ["0.2.0"])
        #expect(
            try replies() == [
                "a refused an upgrade has a version as Debian writes it, such as 0.2.0 ",
                "b refused remote.allow of this device does not have \"upgrade\" ",
                "c refused no unit \(Self.wanted)", "d trial  \(Self.wanted)",
            ]
        )
    }

    /// Made by `minisign -G -W`, as in MinisignTests.
    private static let secretKey = """
        untrusted comment: minisign encrypted secret key
        RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAg2iu+KIPxurCF1rTWjZ\
        lSp9AQNiSH2w6I27cVwStee0s4mF5NILgpBX42pyBq2KYcw3qLaOYoWXFekDK/oZ8ww7RlNZjVsuwAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAA=

        """

    @Test func signature_isForDeviceAndVersion() throws {
        let machine = machine
        let life = try Life(machine)
        defer { life.queue.close() }
        machine.settings.update {
            $0.key = "RWSDaK74og/G6hX42pyBq2KYcw3qLaOYoWXFekDK/oZ8ww7RlNZjVsuw"
        }
        func signed(_ device: String, _ version: String) throws -> String {
            let bytes = Array("waypost-upgrade 1\n\(device)\n\(version)\n".utf8)
            return try MinisignSecretKey(Self.secretKey).sign(bytes, trustedComment: "x").text
        }
        try life.turn("a", "0.2.0")
        try life.turn("b", "0.2.0", signature: "none")
        try life.turn("c", "0.2.0", signature: signed("hut-2", "0.2.0"))
        try life.turn("d", "0.2.0", signature: signed("hut-1", "0.3.0"))
        #expect(machine.requests.value.isEmpty)
        #expect(try replies().allSatisfy { $0.contains(" refused ") && $0.contains("signature") })
        try life.turn("e", "0.2.0", signature: signed("hut-1", "0.2.0"))
        #expect(machine.requests.value == ["0.2.0"])
        #expect(try replies().count == 5)
    }

    /// The power failed after the file was written: root never saw the request.
    @Test func lostRequest_failsAfterAWhile() throws {
        let machine = machine
        let upgrade = StoredUpgrade(
            job: "u1",
            version: "0.2.0",
            before: machine.before(),
            oldResult: nil
        )
        try upgrade.write(in: temporary.path)
        let queue = try Queue(at: "\(temporary.path)/queue.sqlite", clock: SystemClock())
        queue.remember("job 1", "1 begun upgrade u1")
        _ = try queue.flushed()
        queue.close()
        let life = try Life(machine)
        defer { life.queue.close() }
        for _ in 0..<39 { life.turn() }
        #expect(try replies() == ["u1 trial  \(Self.wanted)"])
        for _ in 0..<3 { life.turn() }
        #expect(try replies().count == 2)
        #expect(try replies()[1].hasPrefix("u1 failed root's unit did not answer"))
        #expect(machine.requests.value.isEmpty)
    }

    @Test func damagedFile_isReported_andReplaced() throws {
        let machine = machine
        let path = "\(temporary.path)/upgrade.json"
        try Data("{\"state\":\"trial\"".utf8).write(to: URL(fileURLWithPath: path))
        let life = try Life(machine)
        defer { life.queue.close() }
        life.turn()
        #expect(machine.warnings.value.count == 1)
        try life.turn("u1", "0.2.0")
        #expect(try replies() == ["u1 trial  \(Self.wanted)"])
    }
}
