// Jobs at the server: the commands, the offer in answers, the list, and the reply that closes one.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct JobTests {
    private func list(_ receiver: ReceiverProcess, _ token: String, _ query: String = "") throws
        -> (status: Int, tag: String, jobs: [[String: String]])
    {
        let answer = try receiver.request(
            "GET /api/device/jobs\(query) HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\n\r\n"
        )
        let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        let body = object as? [String: Any] ?? [:]
        return (
            answer.status, body["tag"] as? String ?? "", body["jobs"] as? [[String: String]] ?? []
        )
    }

    /// Sends a batch of one record of `d1`; returns the tag of the answer.
    private func sent(_ receiver: ReceiverProcess, _ token: String, _ members: String) throws
        -> String?
    {
        let record =
            #"{"id":"\#(UUID().uuidString)","timestamp":"2026-11-21T04:30:07.123Z"\#(members)}"#
        let body = Array(
            """
            {"stream_name":"replies","device_id":"d1","data":[\(record)],"batch_metadata":{"total_records":1}}
            """.utf8
        )
        let head = RawRequest.head(length: body.count, token: token)
        let answer = try receiver.request(head, body)
        #expect(answer.status == 200, "\(answer.body)")
        let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        return (object as? [String: Any])?["jobs"] as? String
    }

    private func add(_ receiver: ReceiverProcess, _ arguments: String...) throws -> String {
        let outcome = try receiver.command(["job", "d1"] + arguments)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output.trimmingCharacters(in: .newlines)
    }

    @Test func job_isOffered_untilItsReplyIsStored() throws {
        let receiver = try ReceiverProcess()
        let token = try receiver.enrol()
        #expect(try sent(receiver, token, "") == nil)
        #expect(try list(receiver, token).jobs.isEmpty)
        let first = try add(receiver, "restart", "--source", "audio")
        let tag = try #require(try sent(receiver, token, ""))
        #expect(try list(receiver, token).tag == tag)
        let second = try add(receiver, "report")
        let offered = try list(receiver, token, "?device_id=d1")
        #expect(offered.tag != tag && offered.jobs.map { $0["id"] } == [first, second])
        #expect(offered.jobs[0]["source"] == "audio" && offered.jobs[0]["kind"] == "restart")
        let verified = try receiver.request(
            "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\nContent-Length: 0\r\n\r\n"
        )
        #expect(verified.body.contains("\"jobs\":\"\(offered.tag)\""))
        // A reply to no job of this device changes nothing.
        let done = #","kind":"report","state":"done""#
        #expect(try sent(receiver, token, #","job":"other"\#(done)"#) == offered.tag)
        #expect(
            try sent(receiver, token, #","job":"\#(second)","detail":{"status":{}}\#(done)"#) == tag
        )
        let report = try receiver.command("report", "d1", "--last", "--json")
        #expect(report.status == 0 && report.output.contains(second), "\(report.error)")
        receiver.kill()
        try receiver.start()
        #expect(try list(receiver, token).jobs.map { $0["id"] } == [first])
        #expect(try sent(receiver, token, #","job":"\#(first)","state":"failed""#) == nil)
    }

    @Test func upgrade_isOffered_withItsSignature() throws {
        let receiver = try ReceiverProcess()
        let token = try receiver.enrol()
        let file = "\(receiver.folder)/upgrade.minisig"
        try Data("four\nlines\n".utf8).write(to: URL(fileURLWithPath: file))
        _ = try add(receiver, "upgrade", "--version", "1:0.2.0~rc1-1", "--signature", file)
        let job = try list(receiver, token).jobs[0]
        #expect(job["kind"] == "upgrade" && job["version"] == "1:0.2.0~rc1-1")
        #expect(job["signature"] == "four\nlines\n" && job["until"] != nil)
        // A device without a clock would still try it.
        try receiver.sql("UPDATE jobs SET expires=1", in: ".receiver-jobs.sqlite")
        #expect(try list(receiver, token).jobs.isEmpty)
    }

    @Test func list_isForTheTokensDevice() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send("shared") == 200)
        _ = try add(receiver, "sync")
        // A shared token says nothing about the device.
        #expect(try list(receiver, "shared").status == 400)
        #expect(try list(receiver, "shared", "?device_id=d1").jobs.count == 1)
        #expect(try list(receiver, "shared", "?device_id=../d1").status == 400)
        #expect(try list(receiver, "shared", "?device_id=d2").jobs.isEmpty)
        let token = try receiver.enrol("d2")
        #expect(try list(receiver, token, "?device_id=d1").status == 403)
        #expect(try list(receiver, token).jobs.isEmpty)
        #expect(try list(receiver, "wrong", "?device_id=d1").status == 401)
    }

    @Test func editor_asksForAReport_andSeesIt() throws {
        let receiver = try ReceiverProcess()
        let token = try receiver.enrol()
        let editor = try PageClient(receiver, viewer: "eva", role: "editor")
        let viewer = try PageClient(receiver, viewer: "vic")
        let address = "/device/d1/report"
        #expect(try viewer.get("/device/d1").body.contains("href=\"\(address)\""))
        #expect(try !viewer.get(address).body.contains("Ask for a report"))
        #expect(try viewer.request("POST", address, "").status == 403)
        #expect(try editor.request("POST", "/device/d9/report", "").status == 404)
        #expect(try editor.get(address).body.contains("No report has come yet."))
        for _ in 0..<2 { #expect(try editor.request("POST", address, "").status == 303) }
        let jobs = try list(receiver, token).jobs
        #expect(jobs.map { $0["kind"] } == ["report"])
        let asked = try editor.get(address)
        #expect(asked.header.contains("Refresh: 5") && asked.body.contains("Asked for."))
        let evil = #""reasons":["<b>no\u001bsync"]"#
        let detail = #""detail":{"status":{"version":"0.1","state":"degraded",\#(evil)}}"#
        let job = jobs.first?["id"] ?? ""
        _ = try sent(
            receiver,
            token,
            #","kind":"report","state":"done","job":"\#(job)",\#(detail)"#
        )
        let page = try viewer.get(address)
        // One that has not come for an hour may be asked for again.
        for _ in 0..<2 {
            #expect(try editor.request("POST", address, "").status == 303)
            try receiver.sql("UPDATE jobs SET added=1", in: ".receiver-jobs.sqlite")
        }
        #expect(try list(receiver, token).jobs.count == 2)
        #expect(page.body.contains("waypost 0.1 degraded\n  &lt;b&gt;no sync"), "\(page.body)")
        #expect(!page.header.contains("Refresh"))
    }

    @Test func commands_refuseWhatNoDeviceCouldDo() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let wrong = [
            ["restart"], ["sync", "--source", "audio"], ["resend"], ["dance"],
            ["resend", "--since", "yesterday"], ["report", "--until", "2026-11-21T00:00:00Z"],
            ["upgrade"], ["sync", "--version", "0.2.0"], ["sync", "--signature", "/dev/null"],
        ]
        for arguments in wrong {
            #expect(try receiver.command(["job", "d1"] + arguments).status == 64, "\(arguments)")
        }
        let unknown = try receiver.command("job", "d9", "sync")
        #expect(unknown.status == 1 && unknown.error.contains("no device d9"))
        for _ in 0..<64 { _ = try add(receiver, "sync") }
        let more = try receiver.command("job", "d1", "sync")
        #expect(more.status == 1 && more.error.contains("64 open jobs"))
        // A resend says nothing of the end of the job, so the server stops offering it.
        try receiver.sql("DELETE FROM jobs", in: ".receiver-jobs.sqlite")
        _ = try add(receiver, "resend", "--since", "2026-11-21T00:00:00Z")
        #expect(try list(receiver, "t", "?device_id=d1").jobs[0]["until"] == nil)
        try receiver.sql("UPDATE jobs SET expires=1", in: ".receiver-jobs.sqlite")
        #expect(try list(receiver, "t", "?device_id=d1").jobs.isEmpty)
    }
}
