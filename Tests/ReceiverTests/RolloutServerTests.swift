// Rollouts in the database of jobs, and at a running server: commands, replies, alerts, kills.
import Foundation
import Host
import ReceiverSupport
import Support
import Testing

@testable import ServerArchive

@Suite struct RolloutStoreTests {
    private let folder = TemporaryFolder()
    private let jobs: DeviceJobs
    private let now = SystemClock().wall()

    init() throws { jobs = try DeviceJobs(directory: folder.path) }

    /// Runs SQL as another process, which commits it.
    private func sql(_ statement: String) throws {
        let script =
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
            + "d.execute(sys.argv[2]); d.commit()"
        let arguments = ["-c", script, "\(folder.path)/.receiver-jobs.sqlite", statement]
        #expect(try Process.run("/usr/bin/python3", arguments).status == 0)
    }

    private func contacts(_ ids: String...) -> [String: RolloutDevice.Contact] {
        let contact = RolloutDevice.Contact(lastSeen: now.milliseconds)
        return Dictionary(uniqueKeysWithValues: ids.map { ($0, contact) })
    }

    private func start(_ stages: String = "1,100%", of ids: [String] = ["d1", "d2"]) throws {
        _ = try jobs.startRollout("# text\n", to: "forest", of: ids, in: stages, at: now)
    }

    private func states(_ jobs: DeviceJobs? = nil) throws -> [String] {
        try (jobs ?? self.jobs).rollouts().flatMap(\.devices).map(\.state.rawValue)
    }

    @Test func step_andItsVersions_areOneTransaction() throws {
        try start()
        let fail = "BEGIN SELECT raise(ABORT, 'no'); END"
        try sql("CREATE TRIGGER x BEFORE UPDATE ON rollouts \(fail)")
        #expect(throws: (any Error).self) {
            try jobs.stepRollouts(contacts("d1", "d2"), at: now)
        }
        #expect(try jobs.settings().isEmpty && states() == ["pending", "pending"])
        try sql("DROP TRIGGER x")
        _ = try jobs.stepRollouts(contacts("d1", "d2"), at: now)
        // As after a restart.
        let again = try DeviceJobs(directory: folder.path)
        _ = try again.stepRollouts(contacts("d1", "d2"), at: now)
        #expect(try again.settings().map(\.device) == ["d1"])
        #expect(try states(again) == ["given", "pending"])
        let offered = try #require(again.list(of: "d1")["jobs"] as? [[String: Any]])
        #expect(offered.count == 1 && offered[0]["text"] as? String == "# text\n")
    }

    @Test func deviceWithAFullList_isLeftOut() throws {
        for _ in 0..<64 { _ = try jobs.add("sync", [:], of: "d1", until: now + .seconds(60)) }
        try start()
        _ = try jobs.stepRollouts(contacts("d1", "d2"), at: now)
        #expect(try jobs.settings().isEmpty && states() == ["left", "pending"])
        #expect(try jobs.rollouts()[0].devices[0].reason.contains("64 open jobs"))
        _ = try jobs.stepRollouts(contacts("d1", "d2"), at: now)
        #expect(try states() == ["left", "given"])
    }

    @Test func halt_isReportedUntilItIsStored() throws {
        try start("100%")
        #expect(try jobs.stepRollouts(contacts("d1", "d2"), at: now).isEmpty)
        try sql("UPDATE settings SET state='refused', message='why' WHERE device='d2'")
        let halted = try jobs.stepRollouts(contacts("d1", "d2"), at: now)
        #expect(halted.map(\.culprit) == ["d2"] && halted[0].reason == "refused: why")
        #expect(try jobs.stepRollouts(contacts(), at: now + .seconds(10)) == halted)
        #expect(jobs.tag(of: "d1") == nil)
        #expect(try jobs.settings(of: "d1")[0].message == "withdrawn by the rollout")
        try jobs.reportedHalt(of: halted[0])
        #expect(try !jobs.hasOpenRollouts())
        #expect(try jobs.stepRollouts(contacts(), at: now).isEmpty)
        // A corrected version replaces it.
        try start()
        _ = try jobs.stepRollouts(contacts("d1", "d2"), at: now)
        #expect(try jobs.settings().map(\.version) == [2, 1])
    }

    @Test func secondRollout_waitsForTheStages() throws {
        #expect(throws: Failure.self) { try start(of: []) }
        #expect(throws: Failure.self) { try start("1") }
        try start()
        let error = #expect(throws: Failure.self) { try start() }
        #expect(error?.description == "a rollout to forest is running; stop it first")
        _ = try jobs.startRollout("", to: "alps", of: ["d3"], in: "100%", at: now)
        #expect(try jobs.rollouts().map(\.group) == ["alps", "forest"])
        let at = now.milliseconds
        #expect(try jobs.changeRollout(to: "forest") { $0.stop(at: at) }?.status == .stopped)
        #expect(try jobs.changeRollout(to: "sea") { $0.stop(at: at) } == nil)
        try start()
    }
}

@Suite struct RolloutServerTests {
    private let folder = TemporaryFolder()

    /// Sends a reply to the newest version of a device.
    private func reply(_ state: String, of device: String, to receiver: ReceiverProcess) throws {
        let job = try receiver.sql(
            "SELECT job FROM settings WHERE device='\(device)' ORDER BY version DESC LIMIT 1",
            in: ".receiver-jobs.sqlite"
        ).split(separator: "'")[1]
        let record =
            #"{"id":"\#(UUID().uuidString)","timestamp":"\#(RawRequest.time())","job":"\#(job)","#
            + #""kind":"settings","state":"\#(state)","version":1,"message":"why"}"#
        let body = Array(
            """
            {"stream_name":"waypost_replies","device_id":"\(device)","data":[\(record)],
            "batch_metadata":{"total_records":1}}
            """.utf8
        )
        let answer = try receiver.request(RawRequest.head(length: body.count), body)
        #expect(answer.status == 200, "\(answer.body)")
    }

    private func show(_ receiver: ReceiverProcess, _ text: String) throws {
        try waitUntil(text) {
            try receiver.command("settings", "rollout", "show").output.contains(text)
        }
    }

    @Test func rollout_spreadsHaltsAndAlerts() throws {
        let alert = "#!/bin/sh\ncat >>'\(folder.path)/alerts'\n"
        let program = try folder.write(alert, to: "alert", mode: 0o700)
        let receiver = try ReceiverProcess(["--alert-command", program])
        for device in ["d1", "d2", "d3", "d4"] {
            #expect(try receiver.send(device: device) == 200)
            let group = device == "d4" ? "alps" : "forest"
            _ = try receiver.command("label", "device", device, "--group", group)
        }
        let file = try folder.write("[audio]\n", to: "s.toml")
        let begin = ["settings", "rollout", "--group", "forest", "--stages"]
        #expect(try receiver.command(begin + ["1", file]).error.contains("has to be 100%"))
        let started = try receiver.command(begin + ["1,50%,100%", file])
        #expect(started.output == "3 devices, stages 1, 2, 3\n", "\(started.error)")
        try show(receiver, "1 given, 2 pending")
        // The devices after it know nothing of it, also over a kill.
        receiver.kill()
        try receiver.start()
        try reply("kept", of: "d1", to: receiver)
        try receiver.sql("UPDATE settings SET at=at-7200000", in: ".receiver-jobs.sqlite")
        try show(receiver, "2 of 3: 1, 2, 3 devices")
        #expect(try receiver.command("settings", "list").output.split(separator: "\n").count == 3)
        receiver.kill()
        try receiver.start()
        try reply("rolled_back", of: "d2", to: receiver)
        try show(receiver, "halted since")
        let object = try JSONSerialization.jsonObject(
            with: receiver.command("settings", "rollout", "show", "--json").data
        )
        let rollout = ((object as? [String: Any])?["rollouts"] as? [[String: Any]])?.first
        #expect(rollout?["status"] as? String == "halted")
        #expect(rollout?["halted_by"] as? String == "d2")
        #expect(rollout?["reason"] as? String == "rolled back: why")
        #expect(try receiver.command("settings", "list").output.contains("d3") == false)
        try waitUntil("an alert") { (try? folder.read("alerts"))?.isEmpty == false }
        let sent = try folder.read("alerts")
        #expect(sent.contains(#""alert":"halted""#) && sent.contains(#""device_id":"d2""#))
        #expect(sent.contains(#""text":"d2 halted a rollout: forest: rolled back: why""#))
        let resume = ["settings", "rollout", "resume", "--group", "forest"]
        #expect(try receiver.command(resume).output == "running\n")
        try show(receiver, "d3      given")
        let stop = ["settings", "rollout", "stop", "--group"]
        #expect(try receiver.command(stop + ["forest"]).output == "stopped\n")
        #expect(try receiver.command(stop + ["sea"]).status == 1)
    }

    @Test func rollout_needsNoAlerts() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let show = try receiver.command("settings", "rollout", "show")
        #expect(show.output == "no rollout was started yet\n")
        _ = try receiver.command("label", "device", "d1", "--group", "forest")
        let file = try folder.write("", to: "s.toml")
        let begin = ["settings", "rollout", "--stages", "100%", "--group"]
        #expect(try receiver.command(begin + ["sea", file]).error.contains("has no devices"))
        #expect(try receiver.command(begin + ["forest", file]).status == 0)
        try self.show(receiver, "1 given")
        try reply("refused", of: "d1", to: receiver)
        try self.show(receiver, "d1: refused: why")
        let open = "SELECT is_open FROM rollouts"
        try receiver.waitUntil(open, gives: "[(0,)]\n", in: ".receiver-jobs.sqlite")
    }
}
