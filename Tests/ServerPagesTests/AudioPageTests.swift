// Audio on the page: an hour's chunks, to play and to download.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct AudioPageTests {
    private static let day = "2026-11-21"

    @Test func hour_hasItsChunks_andThePauseBetween() throws {
        let receiver = try ReceiverProcess()
        // Out of order, like a backlog; the third overlaps the second.
        let chunks = [("d1", 3720, 2.0), ("d1", 3600, 2.0), ("d1", 3601, 2.0), ("d1", 7200, 1.0)]
        try SentAudio.send(receiver, chunks, on: Self.day)
        let browser = try PageClient(receiver, viewer: "anna")
        var day = ""
        try waitUntil("the sound on the page of the day") {
            day = try browser.get("/device/d1/\(Self.day)").body
            return day.contains("4 chunks, 7 s of sound.")
        }
        #expect(day.contains("<b>Level</b> -43 dBFS "))
        #expect(
            day.contains(
                #"href="/device/d1/2026-11-21/sound/01?zone=UTC"><time datetime="2026-11-21T01:00:00.000Z">2026-11-21 01:00</time></a> <span class="soft">3 chunks"#
            )
        )
        #expect(day.contains(#"2026-11-21 02:00</time></a> <span class="soft">1 chunk<"#))
        let hour = try browser.get("/device/d1/\(Self.day)/sound/01").body
        let times = hour.matches(of: /<th scope="row"><time datetime="([^"]+)"/).map {
            String($0.1)
        }
        let expected = ["01:00:00", "01:00:01", "01:02:00"].map { "2026-11-21T\($0).000Z" }
        #expect(times == expected)
        #expect(hour.components(separatedBy: "no sound for 117.0 s").count == 2)
        #expect(hour.components(separatedBy: "no sound for").count == 2)
        #expect(hour.contains("-42.5 dBFS"))
        #expect(try browser.get("/device/d1/\(Self.day)/sound/05").status == 404)
    }

    /// The files are those of UTC; the times are those of the zone, and so are the ways back.
    @Test func hour_isShownInTheZoneOfItsAddress() throws {
        let receiver = try ReceiverProcess()
        try SentAudio.send(receiver, [("d1", 19 * 3600, 2.0), ("d1", 3600, 2.0)], on: Self.day)
        let browser = try PageClient(receiver, viewer: "anna")
        let query = "?zone=Asia%2FKathmandu"
        let page = try browser.page("/device/d1/2026-11-22\(query)", with: "1 chunk, 2 s of sound.")
        let path = "/device/d1/2026-11-21/sound/19\(query)"
        #expect(page.contains("href=\"\(path)\""))
        #expect(page.contains(">2026-11-22 00:45</time>"))
        let hour = try browser.get(path).body
        #expect(hour.contains(#"<html lang="en" data-zone="Asia/Kathmandu">"#))
        #expect(hour.contains("<a href=\"/device/d1/2026-11-22\(query)\">Sun 2026-11-22</a>"))
        #expect(hour.contains(">2026-11-22 00:45:00</time>"))
        #expect(hour.contains("Time (Asia/Kathmandu)"))
        #expect(hour.contains(#"aria-label="Sound of 2026-11-22 00:45:00 Asia/Kathmandu""#))
        // Of several days each has its chunks, in the same zone.
        let week = try browser.get("/device/d1/2026-11-16..2026-11-22\(query)").body
        #expect(week.contains("2 chunks, 4 s of sound."))
        for day in ["Sat 2026-11-21", "Sun 2026-11-22"] {
            let link = "<a href=\"/device/d1/\(day.dropFirst(4))\(query)\">\(day)</a>"
            #expect(week.contains("\(link) <span class=\"soft\">1 chunk</span>"), "\(day)")
        }
    }

    /// From a gap, an event, or a record of a program that listens.
    @Test func timeWithoutASound_leadsToTheChunkBeforeIt() throws {
        let receiver = try ReceiverProcess()
        try SentAudio.send(
            receiver,
            [("d1", 3600, 2), ("d1", 3720, 2), ("d1", 7200, 1)],
            on: Self.day
        )
        try receiver.send("birds", on: Self.day, [("01:02:01", #""species":"Cuculus canorus""#)])
        try receiver.send(
            "linux_gpsd_location",
            on: Self.day,
            [("01:02:01", #""latitude":1,"longitude":2"#)]
        )
        let gap =
            #""kind":"gap","source":"storage","detail":{"kind":"missed","records":5,"from":"2026-11-20T23:00:00Z","to":"2026-11-21T00:10:00Z"}"#
        try receiver.send("waypost_events", on: Self.day, [("01:30:00", gap)])
        let browser = try PageClient(receiver, viewer: "anna")
        let start = Int(
            try #require(ISO8601DateFormatter().date(from: "\(Self.day)T00:00:00Z"))
                .timeIntervalSince1970
        )
        let path = "/device/d1/\(Self.day)"
        func link(_ second: Int, _ end: String = "") -> String {
            "href=\"\(path)/sound?at=\((start + second) * 1000)\(end)\""
        }
        _ = try browser.page("\(path)", with: link(-3600, "&amp;zone=UTC"))
        #expect(try browser.get("/device/d1").body.contains(link(5400)))
        #expect(try browser.get("\(path)/birds").body.contains(link(3721)))
        #expect(!(try browser.get("\(path)/linux_gpsd_location").body.contains("?at=")))
        func place(_ second: Int) throws -> (hour: String, chunk: String) {
            let answer = try browser.get("\(path)/sound?at=\((start + second) * 1000)")
            #expect(answer.status == 303)
            let found = try #require(
                answer.header.firstMatch(of: /Location: ([^?]+)\?at=(\d+)#(\S+)/)
            )
            let page = try browser.get(String(found.1)).body
            let row = try #require(
                page.firstMatch(of: try Regex("<tr id=\"\(found.3)\" data-start=\"(\\d+)\""))
            )
            return (String(found.1.suffix(2)), String(row.output[1].substring ?? ""))
        }
        for (second, hour, chunk) in [
            (3721, "01", 3720), (7000, "01", 3720), (9000, "02", 7200), (-3600, "01", 3600),
        ] {
            let found = try place(second)
            #expect(found.hour == hour && found.chunk == "\((start + chunk) * 1000)", "\(second)")
        }
        #expect(try browser.get("\(path)/birds?at=\(start)").status == 404)
        #expect(try browser.get("\(path)/sound?at=9223372036854775807").status == 303)
        #expect(
            try PageClient(receiver).get("\(path)/sound?at=1").header.contains("Location: /login")
        )
    }

    /// Sends one chunk and returns its folder and name.
    private func oneChunk(_ receiver: ReceiverProcess, length: Double) throws -> (String, String) {
        try SentAudio.send(receiver, [("d1", 3600, length)], on: Self.day)
        let folder = receiver.folder + "/audio/sound/\(Self.day)/d1"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        return (folder, try #require(names.first { $0.hasSuffix(".wav") }))
    }

    @Test func file_isServedWhole_andInParts() throws {
        let receiver = try ReceiverProcess()
        let (folder, name) = try oneChunk(receiver, length: 0.5)
        let path = "/device/d1/\(Self.day)/sound/\(name)"
        let sound = SentAudio.wav(seconds: 0.5)
        let browser = try PageClient(receiver, viewer: "anna")
        let (whole, code) = try browser.download(path)
        #expect(code == 200)
        #expect(whole == sound)
        let parts: [(range: String, bytes: Range<Int>, status: Int)] = [
            ("bytes=4-7", 4..<8, 206), ("bytes=8000-", 8000..<8044, 206),
            ("bytes=-4", 8040..<8044, 206), ("bytes=0-99999999", 0..<8044, 206),
            ("bytes=8044-", 0..<0, 416), ("bytes=9-4", 0..<8044, 200),
            ("bytes=0-1,5-6", 0..<8044, 200), ("rows=1-2", 0..<8044, 200),
            ("bytes=99999999999999999999-", 0..<8044, 200), ("bytes=-", 0..<8044, 200),
        ]
        for (range, bytes, status) in parts {
            let (data, code) = try browser.download(path, range: range)
            #expect(code == status, "\(range)")
            #expect(data == sound.subdata(in: bytes), "\(range)")
        }
        browser.extra = "Range: bytes=4-7\r\n"
        #expect(try browser.get(path).header.contains("Content-Range: bytes 4-7/8044"))
        browser.extra = ""
        for wrong in [
            "records.ndjson", "..", ".wav", "x.wav", "%2e%2e%2frecords.wav", "x.mp3", "\(name).png",
            "..%2f..%2f..%2f.receiver.sqlite",
        ] {
            #expect(
                try browser.get("/device/d1/\(Self.day)/sound/\(wrong)").status == 404,
                "\(wrong)"
            )
        }
        #expect(try PageClient(receiver).get(path).status == 303)
        try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
        #expect(try browser.get(path).status == 404)
    }
}
