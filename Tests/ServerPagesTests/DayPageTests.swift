// A device's day: its track and its gaps.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerIndex
@testable import ServerPages

@Suite struct DayPageTests {
    private static let day = "2026-11-21"

    /// Every ten seconds, with a gap of an hour; the fix before it comes last, like a backlog.
    private static let fixes = ((0..<60).map { $0 * 10 } + (0..<40).map { 4200 + $0 * 10 }).map {
        second in
        (
            second,
            members:
                #""latitude":\#(47 + Double(second) / 1e5),"longitude":8.5,"altitude":512.34,"fix":"3d""#
        )
    }

    @Test func track_isDrawnWithItsHole_andDownloadedWhole() throws {
        let receiver = try ReceiverProcess()
        try receiver.send("linux_gpsd_location", on: Self.day, Array(Self.fixes.reversed()))
        try receiver.send("weather", on: Self.day, [("00:05:00", #""temperature_c":21.5"#)])
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/\(Self.day)", with: "100 fixes from")
        for time in ["00:00:00", "01:16:30"] {
            #expect(html.contains(#".000Z">\#(Self.day) \#(time)</time>"#), "\(time)")
        }
        #expect(html.contains("1 gap (dashed)"))
        #expect(html.components(separatedBy: "<polyline").count == 3)
        #expect(html.components(separatedBy: #"class="hole""#).count == 2)
        #expect(html.contains("?mlat=47.04590&amp;mlon=8.50000"))
        #expect(!html.contains("Track (weather)"))
        let answer = try browser.get("/device/d1/\(Self.day)/linux_gpsd_location.gpx")
        #expect(answer.header.contains("Content-Type: application/gpx+xml"))
        #expect(answer.header.contains(#"attachment; filename="d1-2026-11-21.gpx""#))
        // A strict XML reader.
        let script = """
            import sys, xml.etree.ElementTree as tree
            gpx = "{http://www.topografix.com/GPX/1/1}"
            root = tree.fromstring(sys.stdin.buffer.read())
            points = list(root.iter(gpx + "trkpt"))
            print(len(list(root.iter(gpx + "trkseg"))), len(points), points[-1].get("lat"),
                  points[-1].findtext(gpx + "ele"), points[-1].findtext(gpx + "time"))
            """
        let read = try Process.run("/usr/bin/python3", ["-c", script], input: answer.body)
        #expect(read.output == "2 100 47.0459000 512.3 2026-11-21T01:16:30.000Z\n", "\(read.error)")
    }

    @Test func strips_showWhatCameAndWhatWasLost() throws {
        let receiver = try ReceiverProcess()
        // Two slots of ten minutes, one of them half full.
        try receiver.send(
            "weather",
            on: Self.day,
            [("06:00:00", #""t":1"#), ("06:19:59", #""t":2"#)]
        )
        try receiver.send("weather", on: Self.day, [("12:00:00", #""t":3"#)])
        func event(_ time: String, _ kind: String, _ source: String, _ detail: String) -> (
            String, String
        ) {
            (time, #""kind":"\#(kind)","source":"\#(source)","detail":{\#(detail)}"#)
        }
        try receiver.send(
            "waypost_events",
            on: Self.day,
            [
                event(
                    "09:00:00",
                    "gap",
                    "storage",
                    #""stream":"beacons","kind":"missed","records":5,"from":"2026-11-21T03:00:00.000Z","to":"2026-11-21T04:00:00.000Z""#
                ),
                event("10:00:00", "source_lost", "audio", #""since":"2026-11-21T09:59:00.000Z""#),
                event(
                    "11:00:00",
                    "source_recovered",
                    "audio",
                    #""since":"2026-11-21T09:59:00.000Z","until":"2026-11-21T10:58:00.000Z""#
                ),
                // Lost until the gateway was restarted.
                event("13:00:00", "source_lost", "location", ""),
                event("14:00:00", "started", "gateway", ""),
                // Of another day, and one without a valid time.
                event(
                    "15:00:00",
                    "evicted",
                    "storage",
                    #""from":"2026-11-19T03:00:00Z","to":"2026-11-19T04:00:00Z""#
                ),
                event("15:00:01", "gap", "storage", #""from":"x","to":7"#),
            ]
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/\(Self.day)", with: ">Position<")
        for part in [
            "3 records in 0.5 h of 24 h", ">Beacons<", ">Sound<",
            "5 lost (missed) from 2026-11-21 03:00:00 to 2026-11-21 04:00:00 UTC",
            "source lost from 2026-11-21 09:59:00 to 2026-11-21 10:58:00 UTC",
            "source lost from 2026-11-21 13:00:00 to 2026-11-21 14:00:00 UTC",
            #"<rect class="cover" x="36.00" width="2.00" y="0" height="10">"#,
            #"<rect class="cover" x="72.00" width="1.00" y="0" height="10">"#,
            #"<rect class="loss" x="18.00" width="6.00" y="0" height="10">"#,
        ] { #expect(html.contains(part), "\(part)") }
        #expect(!html.contains(">storage<"))
        // A past day has no future part.
        #expect(!html.contains(#"class="later""#))
        let days = try browser.get("/device/d1/days?year=2026").body
        #expect(days.contains("<title>Sat 2026-11-21: 3 records"))
    }

    /// A stop, a planned pause of a source and a schedule are no gaps.
    @Test func timeline_distinguishesPlannedFromLost() throws {
        let receiver = try ReceiverProcess()
        func time(_ hour: Int) -> String { String(format: "\(Self.day)T%02d:00:00.000Z", hour) }
        func event(_ hour: Int, _ kind: String, _ source: String, _ detail: String) -> (
            String, String
        ) {
            (
                String(format: "%02d:00:00", hour),
                #""kind":"\#(kind)","source":"\#(source)","detail":{\#(detail)}"#
            )
        }
        func span(_ from: Int, _ to: Int) -> String {
            #""from":"\#(time(from))","to":"\#(time(to))""#
        }
        try receiver.send(
            "waypost_events",
            on: Self.day,
            [
                event(2, "stopped", "gateway", ""), event(3, "started", "gateway", ""),
                event(6, "gap", "audio", #""state":"off","reason":"settings",\#(span(5, 6))"#),
                event(9, "gap", "audio", #""reason":"overrun","records":7,\#(span(8, 9))"#),
                event(23, "stopped", "gateway", ""),
            ]
        )
        try receiver.send(
            "waypost_effort",
            on: Self.day,
            [
                ("00:00:00", #""source":"audio","state":"recorded",\#(span(0, 10))"#),
                ("10:00:00", #""source":"audio","state":"scheduled_off",\#(span(10, 12))"#),
                (
                    "12:00:00",
                    #""source":"audio","state":"failed","reason":"disk",\#(span(12, 13))"#
                ),
                ("16:00:00", #""source":"audio","state":"unknown",\#(span(16, 17))"#),
                (
                    "18:00:00",
                    #""source":"audio","state":"unknown","clock":"unsynced",\#(span(18, 19))"#
                ),
            ]
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/\(Self.day)", with: "7 lost (gap)")
        let row = try #require(html.firstMatch(of: /<th scope="row"[^>]*>Sound<.*?<\/svg>/)).output
        for (kind, x, width) in [
            ("down", "12.00", "6.00"), ("down", "30.00", "6.00"), ("down", "138.00", "6.00"),
            ("off", "60.00", "12.00"), ("loss", "48.00", "6.00"), ("loss", "72.00", "6.00"),
            ("loss", "96.00", "6.00"),
        ] {
            let rect = #"<rect class="\#(kind)" x="\#(x)" width="\#(width)""#
            #expect(row.contains(rect), "\(rect)")
        }
        #expect(row.components(separatedBy: #"class="loss""#).count == 4)
        for title in ["received", "lost, failed or unknown", "scheduled off", "off"] {
            #expect(html.contains("</svg> \(title)</li>"), "\(title)")
        }
        #expect(html.contains("8 gaps and pauses") || html.contains("7 gaps and pauses"))
    }

    @Test func dayWithoutData_saysSo() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.get("/device/d1/2020-01-01").body
        #expect(html.contains("No data in this time."))
        #expect(!html.contains("<table"))
    }

    /// A letter is at most ten units wide; the largest are on a phone, 17 units high.
    @Test func scaleOfAMap_isWrittenOverByNothing() throws {
        for span in [0.0003, 0.002, 0.0031, 0.017, 0.3, 0.7, 1.3, 2.9, 7, 19, 44, 91, 173, 330] {
            for latitude in [0.0, -33.9, 47.4, 78.2] {
                let ends = [-span / 2, span / 2].map {
                    Track.Fix(time: 0, latitude: latitude, longitude: $0 + 8.123_456)
                }
                var html = HTML()
                try #require(PlaceMap(ends)).draw(&html, label: "") { _ in }
                let text = String(decoding: html.bytes, as: UTF8.self)
                let scale = try #require(text.firstMatch(of: /class="scale" x1="([0-9.]+)"/))
                let words = try #require(text.firstMatch(of: /text-anchor="end">([^<]+)/))
                let left = min(Double(scale.1) ?? 0, 586 - 10 * Double(words.1.count))
                let longitudes = text.matches(of: /<text x="([0-9.]+)" y="394.0">([^<]+)/)
                #expect(!longitudes.isEmpty, "\(span) at \(latitude)")
                var free = 0.0
                for longitude in longitudes {
                    #expect(Double(longitude.1) ?? 0 >= free, "\(longitude.2) covers another")
                    let right = (Double(longitude.1) ?? 600) + 10 * Double(longitude.2.count)
                    #expect(right <= left, "\(longitude.2) at \(latitude), \(span)")
                    free = right
                }
            }
        }
    }

    @Test func pathThatIsNone_isNotFound() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        for path in [
            "d1/2026-02-30", "d1/2026-11-21/..%2f..%2fx.gpx",
            "d1/2026-11-21/none.gpx",
            "d1/2026-11-21/.gpx", "d1/2026-11-21/a/b", "none/2026-11-21", "d1/events",
        ] { #expect(try browser.get("/device/\(path)").status == 404, "\(path)") }
        #expect(try browser.get("/device/d1/2020-01-01").status == 200)
        #expect(try PageClient(receiver).get("/device/d1/2026-11-21/places.gpx").status == 303)
    }
}
