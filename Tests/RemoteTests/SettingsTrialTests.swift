// Settings from the server over a real queue and a real file, with kills between the steps.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

@testable import Remote

@Suite struct SettingsTrialTests {
    private final class Gateway: JobGateway, SettingsDevice {
        let content = Locked("")
        let allowed = Locked(["settings"])
        let reloads = Locked(0)
        let folder = Locked("")
        /// The gateway's own file has errors: nothing else comes into force.
        let isStuck = Locked(false)
        let inForce = Locked(Int64?.none)
        let shown = Locked<StoredSettings?>(nil)
        let observation = Locked(SettingsGate.Observation(passed: .seconds(30)))
        let warnings = Locked([String]())

        var remote: RemoteSettings {
            var settings = RemoteSettings()
            settings.allow = allowed.value
            return settings
        }
        var interval: Duration { .milliseconds(1) }
        var deviceID: String { "hut-1" }

        func fetch(until stop: StopSignal) -> [UInt8]? { Array(content.value.utf8) }
        func perform(_ action: RemoteJob.Action, until stop: StopSignal) -> JobOutcome? {
            JobOutcome(.done)
        }
        func uploadReplies() {}
        func publish(_ reply: JobReply) {}
        func warn(_ what: String) { warnings.update { $0.append(what) } }

        func prepare(_ version: StoredSettings.Version) throws -> SettingsGate.Before {
            if version.text.contains("wrong") { throw Failure("settings 1:1: wrong") }
            return .init(
                healthy: ["audio"],
                intervalMs: 60_000,
                newIntervalMs: 60_000,
                judgesUploads: true
            )
        }
        func observe(
            since: BootInstant,
            _ before: SettingsGate.Before,
            began: WallTime?
        ) -> SettingsGate.Observation {
            observation.value
        }
        var applied: Int64? { inForce.value }
        func reload() {
            reloads.update { $0 += 1 }
            guard !isStuck.value else { return }
            let stored = try? StoredSettings.read(in: folder.value)
            inForce.update { $0 = stored?.current?.number }
        }
        func read() throws -> StoredSettings { try StoredSettings.read(in: folder.value) }
        func write(_ stored: StoredSettings) throws { try stored.write(in: folder.value) }
        func publish(_ stored: StoredSettings) { shown.update { $0 = stored } }
    }

    /// One life of a process, whose turns the test takes itself.
    private final class Life {
        let queue: Queue
        let gateway: Gateway
        let offers: OfferedJobs
        let clock: ManualClock
        private var runner: JobRunner
        private let stop: StopSignal

        init(_ folder: String, _ gateway: Gateway) throws {
            clock = ManualClock(
                Stamp(
                    boot: BootInstant(nanoseconds: 1),
                    wall: WallTime(rfc3339: "2026-12-01T00:00:00Z") ?? .release
                )
            )
            queue = try Queue(at: "\(folder)/queue.sqlite", clock: SystemClock())
            (self.gateway, offers, stop) = (gateway, try OfferedJobs(), try StopSignal())
            gateway.folder.update { $0 = folder }
            _ = StoredSettings.countStart(in: folder)
            gateway.reload()
            let trial = SettingsTrial(gateway, clock)
            runner = JobRunner(queue, clock, offers, gateway, settings: trial)
            runner.restore()
        }

        /// Offers jobs and takes a turn.
        @discardableResult func turn(_ tag: String, _ jobs: String...) -> Duration? {
            gateway.content.update {
                $0 = "{\"tag\": \"\(tag)\", \"jobs\": [\(jobs.joined(separator: ","))]}"
            }
            offers.offer(tag)
            return turn()
        }

        @discardableResult func turn() -> Duration? {
            clock.advance(by: .seconds(30))
            return runner.turn(until: stop)
        }

        func observe(accepted: Bool = false, fails: String? = nil) {
            gateway.observation.update {
                $0.isAccepted = accepted
                $0.sources["audio"] = fails.map { .fails($0) } ?? .collects
            }
            turn()
        }
    }

    private let temporary = TemporaryFolder()
    private var folder: String { temporary.path }

    private var stored: StoredSettings {
        get throws { try StoredSettings.read(in: folder) }
    }

    private static func settings(
        _ version: Int,
        _ text: String = "[audio]\\nbitrate = 16000\\n",
        id: String? = nil
    ) -> String {
        "{\"id\": \"\(id ?? "v\(version)")\", \"kind\": \"settings\", \"version\": \(version), "
            + "\"for\": \"hut-1\", \"text\": \"\(text)\"}"
    }

    /// Returns job, state, message and version of each reply.
    private func replies() throws -> [String] {
        let connection = try Connection(path: "\(folder)/queue.sqlite", access: .readOnly)
        let row = try connection.prepare(
            "SELECT job, state, message, detail FROM replies ORDER BY id"
        )
        var replies: [String] = []
        while try row.step() {
            replies.append((0..<4).map { row.text($0) }.joined(separator: " "))
        }
        return replies
    }

    @Test func settings_areTriedAndKept() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        #expect(life.turn("a", Self.settings(1)) == .seconds(1))
        #expect(try stored.state == .trial && stored.current?.number == 1)
        #expect(try stored.current?.text == "[audio]\nbitrate = 16000\n")
        #expect(life.gateway.inForce.value == 1)
        life.turn()
        life.turn()
        life.observe(accepted: true)
        #expect(try stored.state == .trial)
        life.observe(accepted: true)
        #expect(try stored.state == .kept && stored.trialSince == nil)
        #expect(life.turn() == nil)
        #expect(
            try replies() == ["v1 trial  {\"version\":1}", "v1 kept  {\"version\":1}"]
        )
        #expect(life.gateway.shown.value?.state == .kept)
        // Neither the same version nor an older one is taken again.
        life.turn("b", Self.settings(1, id: "again"))
        #expect(
            try replies().last
                == "again refused version 1 is not newer than version 1 {\"version\":1}"
        )
        #expect(try stored.state == .kept)
    }

    @Test func badSettings_goBack_andAreNotTriedAgain() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.turn("a", Self.settings(3))
        for _ in 0..<4 { life.observe(accepted: true) }
        life.turn("b", Self.settings(4, "[audio]\\nbitrate = 8000\\n"))
        life.turn()
        life.turn()
        for _ in 0..<18 { life.observe(fails: "no device") }
        #expect(try stored.state == .trial)
        for _ in 0..<4 { life.observe(fails: "no device") }
        #expect(try stored.state == .kept && stored.current?.number == 3 && stored.refused == 4)
        #expect(
            try replies().last
                == "v4 rolled_back audio did not collect for 10 minutes: no device {\"version\":4}"
        )
        life.turn("c", Self.settings(4, id: "again"))
        #expect(try replies().last?.hasPrefix("again refused") == true)
        #expect(try stored.current?.number == 3)
    }

    @Test func wrongSettings_areNeverInForce() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.turn("a", Self.settings(1, "wrong"))
        #expect(try replies() == ["v1 refused settings 1:1: wrong {\"version\":1}"])
        #expect(try stored == StoredSettings() && life.gateway.inForce.value == nil)
        life.gateway.allowed.update { $0 = ["operate"] }
        life.turn("b", Self.settings(2))
        #expect(try replies().last?.contains("does not have \"settings\"") == true)
        #expect(try stored == StoredSettings())
    }

    @Test func newVersion_endsATrial_andTheWayBackLeadsPastIt() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.turn("a", Self.settings(1))
        life.turn("b", Self.settings(2))
        #expect(
            try replies() == [
                "v1 trial  {\"version\":1}",
                "v1 rolled_back version 2 replaced it {\"version\":1}",
                "v2 trial  {\"version\":2}",
            ]
        )
        life.turn()
        for _ in 0..<24 { life.observe(fails: "busy") }
        #expect(try stored.current == nil && stored.state == .none && stored.refused == 2)
    }

    /// A kill at any step: the answer that is owed comes after the next start, once.
    @Test func kill_losesNoAnswer_andTwoStartsGoBack() throws {
        let gateway = Gateway()
        let first = try Life(folder, gateway)
        first.turn("a", Self.settings(1))
        first.queue.close()
        let second = try Life(folder, gateway)
        second.turn()
        #expect(try stored.state == .trial)
        second.queue.close()
        let third = try Life(folder, gateway)
        #expect(try stored.state == .none && stored.current == nil)
        third.turn()
        third.turn("a", Self.settings(1))
        #expect(
            try replies() == [
                "v1 trial  {\"version\":1}",
                "v1 rolled_back the gateway was started 2 times within 10 minutes each {\"version\":1}",
            ]
        )
        third.queue.close()
    }

    /// The process ends after the file is written and before the answer is.
    @Test func killBeforeTheAnswer_isAnsweredWithTheTrial() throws {
        let gateway = Gateway()
        var settings = StoredSettings()
        let before = try gateway.prepare(.init(number: 5, text: ""))
        var version = StoredSettings.Version(number: 5, text: "[audio]\n")
        version.job = "v5"
        settings.begin(version, SettingsGate(before: before), at: .release)
        try settings.write(in: folder)
        let queue = try Queue(at: "\(folder)/queue.sqlite", clock: SystemClock())
        queue.remember("job 1", "1 begun settings v5")
        _ = try queue.flushed()
        queue.close()
        let life = try Life(folder, gateway)
        life.turn("a", Self.settings(5))
        #expect(try replies() == ["v5 trial  {\"version\":5}"])
        life.queue.close()
    }

    @Test func clearing_isTheWayBackWithoutAServer() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.turn("a", Self.settings(1))
        for _ in 0..<4 { life.observe(accepted: true) }
        var settings = try stored
        settings.clear("removed on the device", isSigned: true)
        try settings.write(in: folder)
        life.turn()
        #expect(try stored.current == nil && stored.state == .none)
        #expect(try replies().last == "v1 rolled_back removed on the device {\"version\":1}")
        life.turn("b", Self.settings(1, id: "again"))
        #expect(try stored.current == nil)
    }

    /// A start took a version back, and a person cleared the one before, before anything was
    /// answered.
    @Test func clearingAfterARollback_losesNoAnswer() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.turn("a", Self.settings(1))
        for _ in 0..<4 { life.observe(accepted: true) }
        life.turn("b", Self.settings(2))
        var settings = try stored
        for _ in 0..<2 { settings.start() }
        settings.clear("removed on the device", isSigned: true)
        try settings.write(in: folder)
        for _ in 0..<3 { life.turn() }
        #expect(try stored.current == nil && replies().count == 5)
        #expect(
            try replies().suffix(2).map { $0.prefix(14) } == ["v2 rolled_back", "v1 rolled_back"]
        )
        // The next version has an answer of its own.
        life.turn("c", Self.settings(3))
        #expect(try replies().last == "v3 trial  {\"version\":3}")
    }

    /// A damaged file is not an empty one: what it refused stays refused.
    @Test func damagedFile_isAnError_untilSomebodyClearsIt() throws {
        let path = "\(folder)/\(StoredSettings.fileName)"
        try Data("{\"state\":\"trial\"".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: Failure.self) { _ = try StoredSettings.read(in: folder) }
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.turn("a", Self.settings(1))
        #expect(try replies() == ["v1 refused the stored settings cannot be read {\"version\":1}"])
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(
            atPath: path,
            withDestinationPath: "/etc/passwd"
        )
        #expect(throws: (any Error).self) { _ = try StoredSettings.read(in: folder) }
    }

    /// The gateway's own file has errors at the end of the trial: the reload is asked for again,
    /// and no trial goes on until then.
    @Test func settingsThatAreNotInForce_areNotJudged() throws {
        let life = try Life(folder, Gateway())
        defer { life.queue.close() }
        life.gateway.isStuck.update { $0 = true }
        life.turn("a", Self.settings(1))
        for _ in 0..<50 { life.observe(accepted: true) }
        #expect(try stored.state == .trial)
        let asked = life.gateway.reloads.value
        #expect((2...5).contains(asked))
        life.gateway.isStuck.update { $0 = false }
        life.gateway.reload()
        for _ in 0..<4 { life.observe(accepted: true) }
        #expect(try stored.state == .kept)
    }
}
