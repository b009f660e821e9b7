// The health that devices report, on the page and in alerts of a real server.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct HealthTests {
    private let receiver: ReceiverProcess

    init() throws { receiver = try ReceiverProcess() }

    /// Sends a record with these members, so many seconds old.
    private func send(
        _ members: String,
        device: String = "d1",
        secondsAgo: TimeInterval = 0,
        stream: String = "waypost_health",
        to receiver: ReceiverProcess? = nil
    ) throws {
        let time = RawRequest.time(secondsAgo: secondsAgo)
        let body = Array(
            """
            {"stream_name":"\(stream)","device_id":"\(device)","data":[{"id":"\(UUID().uuidString)",
            "timestamp":"\(time)",\(members)}],"batch_metadata":{"total_records":1,"clock":"synced"}}
            """.utf8
        )
        let answer = try (receiver ?? self.receiver).request(
            RawRequest.head(length: body.count),
            body
        )
        #expect(answer.status == 200, "\(answer.body)")
    }

    private static let healthy = #""state":"healthy","uptime_s":90"#

    private func event(_ kind: String, _ source: String, _ detail: String) -> String {
        #""kind":"\#(kind)","source":"\#(source)","detail":{\#(detail)}"#
    }

    /// Returns a device's row of the overview, once the page contains a text.
    private func row(_ device: String = "d1", with text: String) throws -> String {
        let html = try PageClient(receiver, viewer: UUID().uuidString).page(with: text)
        let rows = html.components(separatedBy: "<tr>")
        return try #require(rows.first { $0.contains("/device/\(device)\"") })
    }

    @Test func healthRecord_fillsTheColumns() throws {
        try send(
            """
            "state":"degraded","reasons":["audio: <b>gone</b>","storage is low"],"version":"1.2","uptime_s":90000,
            "free_bytes":1234000000,"database_bytes":335400,"pending":{"places":1200,"weather":34},
            "oldest_pending_at":"2026-11-20T10:00:00.000Z","lost_24h":{"places":5,"weather":2},
            "sources":{"audio":"error"},"cpu_temperature_c":51.25,"undervoltage":true,"load_1m":0.5,
            "memory_available_bytes":312000000,"wifi_rssi_dbm":-61,"next_sync_at":"2026-11-21T12:00:00.000Z"
            """
        )
        let row = try row(with: "storage is low")
        for part in [
            "state degraded", "audio: &lt;b&gt;gone&lt;/b&gt;", "1.2 GB free",
            ">1\u{202F}234 records<",
            ">7<", "7 lost in the last day", "undervoltage",
        ] { #expect(row.contains(part), "\(part) in \(row)") }
        let page = try PageClient(receiver, viewer: "anna").get("/device/d1").body
        for part in [
            "51.3 °C", "-61 dBm", "312 MB", "0.50", "1 d 1 h", "2026-11-21 12:00 UTC",
            "2026-11-20T10:00:00.000Z",
        ] { #expect(page.contains(part), "\(part)") }
    }

    /// The device's configuration may name it; a record without `uptime_s` is another stream's.
    @Test func healthRecord_isKnownUnderAnotherName() throws {
        try send(#""state":"critical","note":"uptime_s""#, stream: "doors")
        try send(#""state":"degraded","uptime_s":90"#, stream: "box_health")
        let row = try row(with: "state degraded")
        #expect(row.contains("it reports that it is degraded"))
    }

    @Test func healthyDevice_isHealthy_whateverItsOlderEventsSay() throws {
        let events: [(String, Double, String)] = [
            ("d1", 60, event("storage_low", "storage", #""level":"critical","free_bytes":2"#)),
            ("d1", 60, event("source_lost", "audio", "")),
            ("d1", 60, event("gap", "audio", #""stream":"audio","records":1240"#)),
            ("d2", 60, event("source_lost", "audio", "")),
            ("d3", 0, event("source_lost", "audio", "")),
        ]
        for (device, seconds, members) in events {
            try send(members, device: device, secondsAgo: seconds, stream: "waypost_events")
        }
        let working = Self.healthy + #","sources":{"audio":"loaded"},"lost_24h":{}"#
        try send(working, device: "d1", secondsAgo: 30)
        // The source is still lost: the device calls that degraded, and so does the page.
        let lost = #""state":"degraded","reasons":["audio: no device"],"sources":{"audio":"error"}"#
        try send(lost, device: "d2", secondsAgo: 30)
        // The event is newer.
        try send(working, device: "d3", secondsAgo: 30)
        let healthy = try row(with: "1 healthy")
        #expect(healthy.contains("state healthy") && !healthy.contains("reasons"))
        for (device, reason) in [("d2", "audio: no device"), ("d3", "audio has been lost since")] {
            let row = try row(device, with: "2 degraded")
            #expect(row.contains("state degraded") && row.contains(reason))
            #expect(row.components(separatedBy: "<li>").count == 2, "one reason, once: \(row)")
        }
    }

    /// It was called healthy before anything had come.
    @Test func newDevice_isWaiting_neitherHealthyNorAnAlert() throws {
        // Before the first enrolment a server without a token file accepts every device.
        try send(Self.healthy)
        let token = try receiver.enrol("new-1")
        let waiting = try row("new-1", with: "1 waiting")
        #expect(waiting.contains("state waiting") && waiting.contains("waiting for its first data"))
        let browser = try PageClient(receiver, viewer: "eva")
        #expect(try browser.page(with: "1 healthy").contains("1 waiting"))
        try receiver.sql(
            "UPDATE devices SET enrolled=enrolled-1000 WHERE device='new-1'",
            in: ".receiver-enrolments.sqlite"
        )
        let overdue = try row("new-1", with: "1 degraded")
        #expect(overdue.contains("enrolled but never heard from"))
        #expect(try receiver.send(token, device: "new-1") == 200)
        #expect(try row("new-1", with: "2 healthy").contains("state healthy"))
    }

    @Test func oldRecord_countsForTwoOfItsIntervals() throws {
        let degraded = #""state":"degraded","reasons":["a reason"],"pending":{"a":77}"#
        // The interval is an hour for d1, and for d2 the usual five minutes, as it is not known.
        try send(degraded, device: "d1", secondsAgo: 4800)
        for device in ["d1", "d2"] { try send(degraded, device: device, secondsAgo: 1200) }
        // Before the receiver's first start nobody could be heard.
        #expect(receiver.terminate() == 0)
        try receiver.start()
        #expect(try row("d1", with: "1 healthy").contains("a reason"))
        let other = try row("d2", with: "1 degraded")
        #expect(other.contains("state healthy"))
        #expect(!other.contains("a reason") && !other.contains(">77<"))
    }

    @Test func plannedRestart_isNoLoss() throws {
        let off = #""stream":"audio","state":"off","records":3,"from":"2026-11-21T10:00:00.000Z""#
        try send(event("gap", "audio", off), stream: "waypost_events")
        try send(event("gap", "audio", #""records":4"#), device: "d2", stream: "waypost_events")
        let row = try row(with: "4 lost in the last day")
        #expect(row.contains("state healthy") && !row.contains("lost in"))
    }

    private static let hostile: [String] = [
        #""state":5"#, #""state":"<script>""#, #""state":["critical"]"#,
        #""state":null,"pending":{"a":1}"#,
        #""state":"healthy","reasons":[1,{},["x"],null],"pending":7,"lost_24h":"many","sources":[]"#,
        #""state":"healthy","pending":{"a":1e308,"b":-5,"c":{"d":[]},"e":9e18,"f":1e308}"#,
        #""state":"healthy","uptime_s":1e300,"cpu_temperature_c":-1e300,"free_bytes":1e308,"load_1m":1e99"#,
        #""state":"healthy","wifi_rssi_dbm":"x","undervoltage":3,"next_sync_at":9,"oldest_pending_at":"9999-99-99""#,
        #""state":"healthy","uptime_s":-1e300,"memory_available_bytes":-1,"sources":{"audio":{"x":1}}"#,
        #""state":"healthy","pending":{\#((0..<3000).map { "\"s\($0)\":1" }.joined(separator: ","))}"#,
    ]

    /// A healthy device beside each is shown as it is.
    @Test(arguments: hostile)
    func hostileValues_harmNobody(members: String) throws {
        try send(members)
        try send(Self.healthy, device: "d2")
        let viewer = try PageClient(receiver, viewer: "anna")
        let html = try viewer.page(with: "2 healthy")
        #expect(!html.contains("<script>"))
        #expect(try viewer.get("/device/d1").status == 200)
    }

    @Test func manyReasons_areCut() throws {
        let reasons = (0..<14).map { "\"reason \($0)\"" }.joined(separator: ",")
        try send(#""state":"degraded","reasons":[\#(reasons)]"#)
        let row = try row(with: "reason 9")
        #expect(row.contains("4 more reasons") && !row.contains("reason 10"))
        try send(#""state":"critical""#, device: "d2")
        #expect(try self.row("d2", with: "1 critical").contains("it reports that it is critical"))
    }

    /// The receiver runs a program for each alert.
    @Test func alerts_comeFromIt() throws {
        let folder = TemporaryFolder()
        let program = folder.path + "/alert"
        let write = ["-c", "cat > \"$1\" && chmod 700 \"$1\"", "sh", program]
        let lines = "#!/bin/sh\nprintf '%s\\n' \"$WAYPOST_TEXT\" >> '\(folder.path)/alerts'\n"
        #expect(try Process.run("/bin/sh", write, input: lines).status == 0)
        let receiver = try ReceiverProcess(["--alert-command", program])
        try send(
            #""state":"degraded","reasons":["audio: no device"],"sources":{"audio":"error"}"#,
            secondsAgo: 60,
            to: receiver
        )
        // The device calls itself degraded without it, so this is no alert. It comes second: alone,
        // a lost source is critical, and the receiver may look at any time.
        let lost = event("source_lost", "audio", "")
        try send(lost, secondsAgo: 90, stream: "waypost_events", to: receiver)
        try receiver.waitUntil(
            "SELECT device FROM marks",
            gives: "[('d1',)]\n",
            in: ".receiver-alerts.sqlite"
        )
        try send(
            #""state":"critical","reasons":["no storage left"],"lost_24h":{"places":12}"#,
            to: receiver
        )
        var alerts: [String] = []
        try waitUntil("two alerts") {
            alerts = ((try? folder.read("alerts")) ?? "").split(separator: "\n").map(String.init)
            return alerts.count == 2
        }
        let expected = [
            "d1 is critical: no storage left", "d1 is losing records: 12 lost in the last day",
        ]
        #expect(alerts.sorted() == expected)
    }
}
