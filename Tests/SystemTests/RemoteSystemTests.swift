// Jobs from the real server to the real gateway, which only makes connections.
import Foundation
import Support
import Testing

@Suite struct RemoteSystemTests {
    private let device: Device
    private let id = "hut-1"

    init() throws { device = try Device() }

    private func start(_ more: String = "[remote]\nallow = [\"operate\"]") throws {
        let endpoint = try device.startReceiver()
        try device.write("demo-token", "token", mode: 0o600)
        // The id is at the top, before any section.
        try device.configure(
            """
            device_id = "\(id)"
            [upload]
            required = false
            endpoint = "\(endpoint)"
            token_file = "\(device.folder)/token"
            interval = "2s"
            [stream.weather]
            \(more)
            """
        )
        try device.start()
        try device.waitForServer(toKnow: id)
    }

    private func server(_ arguments: String...) throws -> Outcome {
        try Process.run(
            Tree.program("waypost-receiver"),
            arguments + ["--data", device.folder + "/data"]
        )
    }

    private func job(_ arguments: String...) throws -> String {
        let outcome = try Process.run(
            Tree.program("waypost-receiver"),
            ["job", id] + arguments + ["--data", device.folder + "/data"]
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Waits for the reply to a job.
    private func reply(_ job: String) throws -> [String: Any] {
        var found: [String: Any] = [:]
        try waitUntil("the reply to \(job)") {
            for line in try device.arrived("waypost_replies") where line.contains(job) {
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
                found = object as? [String: Any] ?? [:]
            }
            return !found.isEmpty
        }
        return found
    }

    @Test func report_arrives_withStatusExaminationAndLog() throws {
        try start()
        let began = Date()
        let outcome = try server("report", id, "--json", "--wait", "60")
        #expect(outcome.status == 0, "\(outcome.error)")
        // One upload interval and 10 s, and the time that a busy test machine takes.
        #expect(Date().timeIntervalSince(began) < 12 * Double(patience) + 12)
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        let record = try #require(object as? [String: Any])
        #expect(record["kind"] as? String == "report" && record["state"] as? String == "done")
        let detail = try #require(record["detail"] as? [String: Any])
        let status = try #require(detail["status"] as? [String: Any])
        #expect(status["device_id"] as? String == id)
        let doctor = try #require(detail["doctor"] as? [String: Any], "\(record["message"] ?? "")")
        #expect(!(doctor["checks"] as? [[String: Any]] ?? []).isEmpty)
        let printed = try #require(detail["text"] as? String)
        #expect(printed.hasPrefix("waypost ") && printed.contains("\nSOURCE    STATE"))
        #expect((detail["log"] as? [String] ?? []).contains { $0.contains("info: running") })
        // On the device, too, it is one line.
        let export = try device.run("export", "replies")
        let lines = export.output.split(separator: "\n").map { Data($0.utf8) }
        #expect(
            lines.count == 1
                && lines.allSatisfy { (try? JSONSerialization.jsonObject(with: $0)) != nil }
        )
        let text = try server("report", id, "--last")
        #expect(text.status == 0)
        #expect(text.output.hasPrefix("report done ") && text.output.contains("\n\n\(printed)"))
        // Its job is closed, and the device says what it did last.
        let remote = try #require(try device.status()["remote"] as? [String: Any])
        #expect(remote["settings_state"] as? String == "none")
        #expect((remote["last_job"] as? [String: Any])?["kind"] as? String == "report")
        // All of that without a port that anybody could connect to.
        #expect(try device.openPorts() == [])
        #expect(try device.stop() == 0)
    }

    @Test func otherKinds_useTheDeviceSCommands() throws {
        try start()
        #expect(try device.run("put", "weather", input: "{\"n\": 1}\n").status == 0)
        try waitUntil("the record") { try device.arrived("weather").count == 1 }
        let jobs = [
            try job("sync"), try job("restart", "--source", "audio"),
            try job("restart", "--source", "radio"),
            try job("resend", "--stream", "weather", "--since", "2026-01-01T00:00:00Z"),
        ]
        let replies = try jobs.map { try reply($0) }
        #expect(
            replies.map { $0["state"] as? String } == ["done", "failed", "refused", "done"],
            "\(replies)"
        )
        #expect((replies[1]["message"] as? String ?? "").contains("disabled in the configuration"))
        #expect((replies[3]["message"] as? String ?? "").hasPrefix("1 record to be sent again"))
        #expect(try device.stop() == 0)
    }

    /// A reply that was not sent yet survives a kill, and its job is not done again.
    @Test func kill_losesNoReply_andRepeatsNoJob() throws {
        try start()
        let jobs = try (0..<5).map { _ in try job("report") }
        try waitUntil("the first report") { try !device.arrived("waypost_replies").isEmpty }
        device.killDaemon()
        try device.start()
        for job in jobs { _ = try reply(job) }
        try waitUntil("all are closed") {
            try device.stream("waypost_replies")["pending"] as? Int == 0
        }
        #expect(try device.arrived("waypost_replies").count == jobs.count)
        #expect(try device.stop() == 0)
    }

    @Test func device_doesNothing_withoutItsOwnWord() throws {
        try start("")
        _ = try job("sync")
        let records = try device.arrived("waypost_events").count
        // Three answers that offer the job.
        for number in 1...3 {
            #expect(try device.run("put", "weather", input: "{\"n\": 1}\n").status == 0)
            try waitUntil("record \(number)") { try device.arrived("weather").count == number }
        }
        #expect(try device.arrived("waypost_replies").isEmpty && records > 0)
        let outcome = try server("report", id, "--wait", "0")
        #expect(outcome.status == 1 && outcome.error.contains("has not come"))
        #expect(try device.stop() == 0)
    }
}
