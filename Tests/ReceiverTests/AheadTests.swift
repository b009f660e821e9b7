// Records dated ahead of the server's clock: stored, marked, and never the newest.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct AheadTests {
    private static let ahead = "2099-01-01T00:00:00.000Z"

    private func event(_ kind: String, _ source: String, _ detail: String = "") -> String {
        #","kind":"\#(kind)","source":"\#(source)","detail":{\#(detail)}"#
    }

    /// Marked or not, because the test cannot know whether this machine's clock is synchronised.
    @Test func summary_namesNoneAsTheLast() throws {
        let receiver = try ReceiverProcess()
        let soon = RawRequest.time(secondsAgo: -80_000)
        #expect(try receiver.send(ids: ["now"], time: soon) == 200)
        #expect(try receiver.send(ids: ["ahead"], time: Self.ahead) == 200)
        let summary = try receiver.command("--summary").output
        #expect(summary.contains("2 records") && summary.contains("to \(soon)"), "\(summary)")
    }

    /// A wrong RTC for an hour, then correct again.
    @Test func page_judgesByTheNewestThatIsNotAhead() throws {
        let receiver = try ReceiverProcess()
        let now = RawRequest.time()
        for (id, part, time) in [
            ("a", event("source_lost", "audio"), Self.ahead),
            ("b", event("storage_low", "storage", #""level":"critical""#), Self.ahead),
            ("c", event("gap", "storage", #""records":77"#), Self.ahead),
            ("d", #","latitude":1.5,"longitude":2.5,"battery_percent":3"#, Self.ahead),
            ("e", event("gap", "storage", #""records":5"#), now),
            ("f", #","latitude":47.5,"longitude":8.5,"battery_percent":90"#, now),
        ] { #expect(try receiver.send(ids: [id], padding: part, time: time) == 200) }
        let browser = try PageClient(receiver, viewer: "anna")
        let overview = try browser.page(with: "47.50000, 8.50000")
        #expect(overview.contains(">5 lost in the last day<"))
        for wrong in [
            "1.50000", "has been lost since", "no storage left", "supply is low", "critical<",
        ] {
            #expect(!overview.contains(wrong), "\(wrong)")
        }
        let device = try browser.get("/device/d1").body
        #expect(device.contains("Days ahead of this server&#39;s clock"))
        #expect(device.contains(#"href="/device/d1/2099-01-01?zone=UTC""#))
        #expect(!device.contains("2099-01-01 00:00"))
        #expect(try receiver.command("index", "check").status == 0)
        #expect(try receiver.command("index", "rebuild").status == 0)
        #expect(try browser.page(with: "47.50000, 8.50000").contains(">5 lost in the last day<"))
    }

    /// A later loss is shown, whatever was dated ahead before.
    @Test func laterLoss_isSeen() throws {
        let receiver = try ReceiverProcess()
        let recovered = event("source_recovered", "audio")
        #expect(try receiver.send(ids: ["a"], padding: recovered, time: Self.ahead) == 200)
        let started = event("started", "gateway")
        #expect(try receiver.send(ids: ["b"], padding: started, time: Self.ahead) == 200)
        let lost = event("source_lost", "audio")
        #expect(try receiver.send(ids: ["c"], padding: lost, time: RawRequest.time()) == 200)
        _ = try PageClient(receiver, viewer: "anna").page(with: "audio has been lost since")
    }

    /// An archive of an earlier version has no marks.
    @Test func recordsFromBefore_areNotTheNewestEither() throws {
        let receiver = try ReceiverProcess()
        let place = #","latitude":1.5,"longitude":2.5"#
        #expect(try receiver.send(ids: ["a"], padding: place, time: Self.ahead) == 200)
        let here = #","latitude":47.5,"longitude":8.5"#
        #expect(try receiver.send(ids: ["b"], padding: here, time: RawRequest.time()) == 200)
        #expect(receiver.terminate() == 0)
        let file = receiver.folder + "/stream=places/date=2099-01-01/device=d1/records.ndjson"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        let unmarked = text.replacingOccurrences(of: #""future""#, with: #""synced""#)
        try unmarked.write(toFile: file, atomically: false, encoding: .utf8)
        #expect(try receiver.command("index", "rebuild").status == 0)
        try receiver.start()
        _ = try PageClient(receiver, viewer: "anna").page(with: "47.50000, 8.50000")
    }
}
