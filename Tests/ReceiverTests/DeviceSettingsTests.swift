// Settings at the server: the commands, the job in the list, and the replies, which may be hostile.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct DeviceSettingsTests {
    private let folder = TemporaryFolder()
    private let receiver: ReceiverProcess
    private let token: String

    init() throws {
        receiver = try ReceiverProcess()
        token = try receiver.enrol()
    }

    private func jobs() throws -> [[String: Any]] {
        let answer = try receiver.request(
            "GET /api/device/jobs HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\n\r\n"
        )
        #expect(answer.status == 200 && answer.body.utf8.count <= 64 << 10)
        let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        return (object as? [String: Any])?["jobs"] as? [[String: Any]] ?? []
    }

    /// Sends a batch of replies, each its members as JSON.
    private func reply(_ replies: String..., of device: String = "d1", token: String? = nil) throws
    {
        let records = replies.map {
            #"{"id":"\#(UUID().uuidString)","timestamp":"2026-11-21T04:30:07.123Z",\#($0)}"#
        }
        let body = Array(
            """
            {"stream_name":"waypost_replies","device_id":"\(device)","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":\(records.count)}}
            """.utf8
        )
        let head = RawRequest.head(length: body.count, token: token ?? self.token)
        let answer = try receiver.request(head, body)
        #expect(answer.status == 200, "\(answer.body)")
    }

    private func members(_ job: String, _ state: String, _ version: String, _ message: String = "")
        -> String
    {
        #""job":"\#(job)","kind":"settings","state":"\#(state)","version":\#(version),"message":"\#(message)""#
    }

    /// Gives `d1` a version; returns the id of its job.
    private func give(_ text: String = "[audio]\n", _ options: String...) throws -> String {
        let file = try folder.write(text, to: "s.toml")
        let outcome = try receiver.command(["settings", "set", "d1", file] + options)
        #expect(outcome.status == 0, "\(outcome.error)")
        return try #require(try jobs().last?["id"] as? String)
    }

    /// Expects the state of the newest version and the version in force.
    private func expect(
        _ version: Int,
        _ state: String,
        inForce: Int?,
        _ place: SourceLocation = #_sourceLocation
    ) throws {
        let outcome = try receiver.command("settings", "show", "d1", "--json")
        let object = try JSONSerialization.jsonObject(with: outcome.data) as? [String: Any]
        #expect(object?["version"] as? Int == version, sourceLocation: place)
        #expect(object?["state"] as? String == state, sourceLocation: place)
        #expect(object?["in_force"] as? Int == inForce, sourceLocation: place)
    }

    @Test func settings_areOffered_triedAndKept() throws {
        #expect(try receiver.command("settings", "show", "d1").status == 1)
        #expect(try receiver.command("settings", "list").output.contains("no device"))
        let text = "[audio] # Fuchs/Bär\nschedule = [\"dusk..dawn\"]\r\n\tbitrate = 1\n"
        let job = try give(text)
        let offered = try #require(try jobs().first)
        #expect(offered["kind"] as? String == "settings" && offered["version"] as? Int == 1)
        #expect(offered["for"] as? String == "d1" && offered["text"] as? String == text)
        #expect(offered["until"] is String && offered["signature"] == nil)
        try expect(1, "waiting", inForce: nil)
        try reply(members(job, "trial", "1"))
        #expect(try jobs().isEmpty)
        try expect(1, "trial", inForce: 1)
        let shown = try receiver.command("settings", "show", "d1").output
        #expect(shown.contains("in trial since 20") && shown.hasSuffix("\n\n\(text)\n"))
        try reply(members(job, "kept", "1"))
        // Replies that come again, or late.
        try reply(members(job, "trial", "1"))
        try expect(1, "kept", inForce: 1)
        receiver.kill()
        try receiver.start()
        try expect(1, "kept", inForce: 1)
        // `waypost config remote --clear` on the device.
        try reply(members(job, "rolled_back", "1", "cleared"), members(job, "kept", "1"))
        try expect(1, "rolled_back", inForce: nil)
        let lines = try receiver.command("settings", "list").output.split(separator: "\n")
        #expect(lines.count == 2 && lines[1].hasPrefix("d1      1       rolled back  20"))
    }

    @Test func versionThatIsRolledBack_leavesTheOneBefore() throws {
        try reply(members(try give(), "kept", "1"))
        try reply(members(try give(), "trial", "2"), members("other", "kept", "2"))
        try expect(2, "trial", inForce: 2)
        let third = try give()
        // One batch after an outage.
        try reply(members(third, "trial", "3"), members(third, "rolled_back", "3", "no upload"))
        try expect(3, "rolled_back", inForce: 1)
        #expect(try receiver.command("settings", "clear", "d1").output == "version 4\n")
        let offered = try #require(try jobs().first)
        #expect(offered["text"] as? String == "" && offered["version"] as? Int == 4)
        try reply(members(offered["id"] as? String ?? "", "kept", "4"))
        try expect(4, "kept", inForce: 4)
        #expect(try receiver.command("settings", "show", "d1").output.contains("(empty:"))
    }

    @Test func newerVersion_withdrawsAnOpenOne() throws {
        let first = try give()
        let second = try give("# 2\n", "--version", "7")
        let offered = try jobs()
        #expect(offered.map { $0["id"] as? String } == [second])
        for number in ["7", "3", "0", "-1", "1000000000"] {
            let outcome = try receiver.command("settings", "clear", "d1", "--version=\(number)")
            #expect(outcome.status == 1 && outcome.error.contains("not from 8 to 999999999"))
        }
        // The device had fetched it before.
        try reply(members(first, "trial", "1"))
        try expect(7, "waiting", inForce: 1)
        try receiver.sql("UPDATE jobs SET expires=1", in: ".receiver-jobs.sqlite")
        try expect(7, "expired", inForce: 1)
        #expect(try jobs().isEmpty)
        // The version in force is stored besides the newest 20.
        for _ in 0..<22 { _ = try give() }
        try expect(29, "waiting", inForce: 1)
        let count = try receiver.sql("SELECT count(*) FROM settings", in: ".receiver-jobs.sqlite")
        #expect(count == "[(21,)]\n")
    }

    @Test func signature_isSentAsItIs() throws {
        let text = "untrusted comment: x\nRUQ/+==\ntrusted comment: y\nabc/+==\n"
        let file = try folder.write(text, to: "s.minisig")
        _ = try give("", "--signature", file, "--version", "2")
        #expect(try jobs().first?["signature"] as? String == text)
        let outcome = try receiver.command("settings", "clear", "d1", "--signature", file)
        #expect(outcome.status == 64 && outcome.error.contains("--version"))
    }

    @Test func textThatNoDeviceAccepts_isRefused() throws {
        func error(_ text: String) throws -> String {
            let program = Tree.program("waypost-receiver")
            let arguments = ["settings", "set", "d1", "-", "--data", receiver.folder]
            let outcome = try Process.run(program, arguments, input: text)
            #expect(outcome.status == 1)
            return outcome.error
        }
        #expect(try error(String(repeating: "#", count: 32_001)).contains("more than 32000 bytes"))
        #expect(try error("a = 1\r\nb = \"\u{1B}[1m\"").contains("standard input:2: a control"))
        #expect(try error("\u{202E}").contains("standard input:1:"))
        let latin = folder.path + "/latin.toml"
        try Data([0x23, 0xE4]).write(to: URL(fileURLWithPath: latin))
        let outcome = try receiver.command("settings", "set", "d1", latin)
        #expect(outcome.status == 1 && outcome.error.contains("not UTF-8"))
        let unknown = try receiver.command("settings", "clear", "d9")
        #expect(unknown.status == 1 && unknown.error.contains("no device d9"))
        #expect(try receiver.command("settings", "list").output.contains("no device"))
        // In JSON, each line end is two bytes.
        let long = String(repeating: "\n", count: 32_000)
        for _ in 0..<20 { #expect(try receiver.command("job", "d1", "sync").status == 0) }
        #expect(try error(long).contains("more than 65536 bytes"))
        #expect(try receiver.command("settings", "list").output.contains("no device"))
        try receiver.sql("DELETE FROM jobs", in: ".receiver-jobs.sqlite")
        _ = try give(long)
        let isFull: Bool = try (0..<20).contains { _ in
            try receiver.command("job", "d1", "sync").status == 1
        }
        #expect(isFull)
        #expect(try jobs().count > 1)
    }

    @Test func eachLineThatNoServerMaySet_isNamed() throws {
        func errors(_ text: String) throws -> [String] {
            let outcome = try receiver.command("settings", "set", "d1", folder.write(text, to: "s"))
            guard outcome.status != 0 else { return [] }
            let lines = outcome.error.components(separatedBy: "\(folder.path)/s").dropFirst()
            return lines.map { String($0.prefix { $0 != "," }) }
        }
        let allowed = [
            "upload.interval = \"1h\"\naudio = {bitrate = 1, schedule = []}",
            "[stream]\n[stream.weather]\nmax_rate = 2\n[log]\n", "", "schedule_offset = 3",
        ]
        for text in allowed { #expect(try errors(text) == [], "\(text)") }
        let refusal = "cannot be set from a server"
        #expect(
            try errors("audio.bitrate = 1\naudio.codec = \"wav\"\n[stream.a]\nwire = \"b\"\n")
                == [":2: audio.codec: \(refusal)", ":4: stream.a.wire: \(refusal)"]
        )
        // Not each member of a table, but what comes behind it.
        #expect(
            try errors("[remote]\nallow = []\n[[audio]]\n[upload.quiet.x]\na.b = 1\n")
                == [
                    ":1: remote: \(refusal)", ":3: audio: \(refusal)",
                    ":4: upload.quiet.x: \(refusal)",
                ]
        )
        #expect(try errors("stream.max_rate = 1\nlog = 1\n'a.b' = 1").count == 3)
        #expect(try errors("a = \"\nb = True\nc = True").count == 3)
        #expect(try receiver.command("settings", "show", "d1").output.contains("version   4\n"))
    }

    @Test func hostileReplies_areShownSafely() throws {
        let editor = try PageClient(receiver, viewer: "eva", role: "editor")
        #expect(try !editor.get("/device/d1/report").body.contains("Settings:"))
        let job = try give()
        for version in ["2", "1.5", "\"1\"", "null", "1e999", "99999999999999999999", "[1]"] {
            try reply(members(job, "kept", version))
        }
        let other = try receiver.enrol("d2")
        try reply(members(job, "kept", "1"), of: "d2", token: other)
        try reply(members(job, "waiting", "1"), #""job":"\#(job)","state":"kept","version":1"#)
        try expect(1, "waiting", inForce: nil)
        try reply(members(job, "<i>", "1", String(repeating: "x", count: 2000)))
        try expect(1, "failed", inForce: nil)
        #expect(try receiver.command("settings", "show", "d1").output.contains("Z: …\n"))
        try reply(members(job, "rolled_back", "1", #"<b>no\u001b[31m\nsync\u202e"#))
        let page = try editor.get("/device/d1/report").body
        #expect(page.contains("Settings: version 1 wanted, rolled back at <time"))
        #expect(page.contains("</time>: &lt;b&gt;no?[31m?sync?</p>"), "\(page)")
        let shown = try receiver.command("settings", "show", "d1").output
        #expect(shown.contains("Z: <b>no?[31m?sync?\n"))
    }
}
