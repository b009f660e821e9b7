// Detections of programs, on the page of a day and on the overview.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct DetectionsTests {
    private static let today = String(RawRequest.time().prefix(10))

    private static func heard(_ species: String, _ confidence: String) -> String {
        #""species":"\#(species)","confidence":\#(confidence),"model":"m""#
    }

    @Test func species_areListed_withLinksToTheSound() throws {
        let receiver = try ReceiverProcess()
        let evil = "<i>Strix aluco</i>"
        try SentAudio.send(receiver, [("d1", 0, 60)], on: Self.today)
        let records = [
            (5, Self.heard("Cuculus canorus", "0.5")), (9, Self.heard("Cuculus canorus", "0.91")),
            (7, Self.heard("Cuculus canorus", "0.91")), (20, Self.heard(evil, "1e9")),
            (30, #""species":"no confidence""#), (31, #""species":7,"confidence":0.5"#),
        ]
        for (count, record) in records.enumerated() {
            try receiver.send("birds", on: Self.today, [record])
            // A part of its own; one record is of the sound.
            let rows = "SELECT sum(records) FROM files"
            try receiver.waitUntil(rows, gives: "[(\(count + 2),)]\n", in: ".receiver-index.sqlite")
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let overview = try browser.page(with: "2 species, 4 detections today")
        #expect(overview.contains(#"<a href="/device/d1">"#))
        let html = try browser.get("/device/d1/\(Self.today)").body
        #expect(
            html.contains(
                "<h2>Detections (birds)</h2><p>2 species, 4 detections on the UTC day \(Self.today).</p>"
            )
        )
        let start = try #require(html.firstRange(of: "Detections (birds)")?.upperBound)
        let row = html[start...].prefix(3000)
        let cuckoo = "/device/d1/\(Self.today)/birds?species=Cuculus%20canorus"
        #expect(row.contains(#"<a href="\#(cuckoo)">3</a>"#))
        let noon = try #require(ISO8601DateFormatter().date(from: "\(Self.today)T00:00:00Z"))
        // The first one of the best.
        let sound =
            "/device/d1/\(Self.today)/sound?at=\((Int(noon.timeIntervalSince1970) + 7) * 1000)"
        #expect(row.contains(sound))
        #expect(try browser.get(sound).status == 303)
        #expect(row.contains("&lt;i&gt;Strix") && !html.contains("<i>Strix"))
        let found = try browser.get(cuckoo).body
        #expect(found.components(separatedBy: "<th scope=\"row\">").count == 4)
        #expect(found.contains("All records") && !found.contains("Strix"))
        #expect(try receiver.command("index", "check").status == 0)
    }

    @Test func speciesBeyondTheLimit_areCountedTogether() throws {
        let receiver = try ReceiverProcess()
        for part in 0..<3 {
            let records = (0..<100).map { ($0, Self.heard("s\(part * 100 + $0)", "0.5")) }
            try receiver.send("birds", on: Self.today, records)
        }
        let long = String(repeating: "x", count: 201)
        try receiver.send("birds", on: Self.today, [(1, Self.heard(long, "0.5"))])
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page(with: "201 species, 301 detections today")
        let html = try browser.get("/device/d1/\(Self.today)").body
        #expect(html.contains(#"other species</th><td data-label="Detections">101</td>"#))
        #expect(try receiver.command("index", "check").status == 0)
    }

    @Test func dayThatEndsEarly_saysSo() throws {
        let receiver = try ReceiverProcess()
        let hours = (0..<24).map { (String(format: "%02d:20:00", $0), #""n":1"#) }
        try receiver.send("early", on: "2026-11-20", Array(hours.prefix(15)))
        try receiver.send("whole", on: "2026-11-21", hours)
        let browser = try PageClient(receiver, viewer: "anna")
        let words =
            #"No data after <time datetime="2026-11-20T14:30:00.000Z">2026-11-20 14:30</time>."#
        _ = try browser.page("/device/d1/2026-11-20", with: words)
        #expect(try !browser.page("/device/d1/2026-11-21", with: "24 records").contains("No data"))
    }
}
