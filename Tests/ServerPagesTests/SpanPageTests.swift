// The page of any days in any zone: what it holds, where it leads, and where the device was.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerBase
@testable import ServerPages

@Suite struct SpanPageTests {
    private static func path(_ days: String, _ zone: String) -> String {
        "/device/d1/\(days)?zone=\(FormField.written(zone))"
    }

    /// A record at each end of a local day belongs to it, and those just beyond do not.
    @Test(arguments: [
        ("UTC", "2026-11-21", ["2026-11-21 00:00:00", "2026-11-21 23:59:59"]),
        ("Europe/Berlin", "2026-11-21", ["2026-11-20 23:00:00", "2026-11-21 22:59:59"]),
        ("America/St_Johns", "2026-11-21", ["2026-11-21 03:30:00", "2026-11-22 03:29:59"]),
        ("Pacific/Auckland", "2026-11-21", ["2026-11-20 11:00:00", "2026-11-21 10:59:59"]),
        ("+14:00", "2026-11-21", ["2026-11-20 10:00:00", "2026-11-21 09:59:59"]),
        ("Europe/Berlin", "2026-10-25", ["2026-10-24 22:00:00", "2026-10-25 22:59:59"]),
        ("America/St_Johns", "2026-03-08", ["2026-03-08 03:30:00", "2026-03-09 02:29:59"]),
    ])
    func day_hasTheRecordsOfItsLocalTime(_ zone: String, _ day: String, _ ends: [String]) throws {
        let receiver = try ReceiverProcess()
        let times = try ends.map { end in
            try #require(ISO8601DateFormatter().date(from: end.replacing(" ", with: "T") + "Z"))
        }
        let (first, last) = (times[0], times[1])
        for (time, value) in [(first - 1, 100), (first, 1), (last, 3), (last + 1, 100)] {
            let text = time.formatted(.iso8601)
            let record = (String(text.dropFirst(11).prefix(8)), #""temperature_c":\#(value)"#)
            try receiver.send("weather", on: String(text.prefix(10)), [record])
        }
        let browser = try PageClient(receiver, viewer: "anna")
        // All four are there.
        let days = "2026-01-01..2026-12-31"
        _ = try browser.page(Self.path(days, "UTC"), with: "4 records in")
        let html = try browser.get(Self.path(day, zone)).body
        let hours = Int(((times[1] + 1).timeIntervalSince(times[0]) / 3600).rounded())
        #expect(html.contains("2 records in 0.3 h of \(hours) h"))
        #expect(html.contains(#"3 °C <span class="soft">1 °C to 3 °C, mean 2 °C"#))
        #expect(html.contains(#"data-from="\#(Int(times[0].timeIntervalSince1970) * 1000)""#))
        #expect(html.contains("html lang=\"en\" data-zone=\"\(zone)\">"))
    }

    /// Sums, bars and gaps are those of all days; the day of 25 hours is one of seven.
    @Test func week_overAChangeOfSummerTime_isOnePage() throws {
        let receiver = try ReceiverProcess()
        for (day, value) in [("2026-10-19", 2), ("2026-10-25", 4), ("2026-10-26", 50)] {
            try receiver.send("weather", on: day, [("12:00:00", #""pressure_pa":\#(value)00"#)])
        }
        let gap =
            #""kind":"gap","source":"audio","detail":{"records":7,"from":"2026-10-25T00:30:00Z","to":"2026-10-25T01:30:00Z"}"#
        try receiver.send("waypost_events", on: "2026-10-25", [("02:00:00", gap)])
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/2026-10-26", with: "50 hPa")
        let path = Self.path("2026-10-19..2026-10-25", "Europe/Berlin")
        let html = try browser.page(path, with: "7 lost")
        for part in [
            "d1</a>, Mon 2026-10-19 to Sun 2026-10-25</h1>",
            "Times and days in Europe/Berlin, UTC+02:00, then UTC+01:00.",
            "2 records in 0.3 h of 169 h",
            "7 lost (gap) from 2026-10-25 02:30:00 to 2026-10-25 02:30:00 Europe/Berlin",
            #"<b>pressure</b> 4 hPa <span class="soft">2 hPa to 4 hPa, mean 3 hPa"#,
            #"viewBox="0 0 169.00 10""#, #"<rect class="cover" x="14.00" width="1.00""#,
            ">Sat 10-24</text>", ">Mon 2026-10-19</a>",
        ] { #expect(html.contains(part), "\(part)") }
        #expect(!html.contains("50 hPa"))
        // A link of the week is as long as the week; one of a month ends on the same day.
        func hasLink(_ days: String) -> Bool {
            html.contains("href=\"\(Self.path(days, "Europe/Berlin"))\"")
        }
        #expect(hasLink("2026-10-26..2026-11-01") && hasLink("2026-10-25"))
        #expect(hasLink("2026-09-26..2026-10-25") && !hasLink("2026-10-12..2026-10-18"))
        #expect(html.contains(#"aria-current="page">Week</a>"#))
        let year = try browser.get(Self.path("2025-10-27..2026-10-27", "UTC"))
        #expect(year.body.contains("3 records in 0.5 h of 8784 h"))
        #expect(year.body.utf8.count < 30_000)
    }

    @Test func form_leadsToTheAddressOfItsDaysAndZone() throws {
        let receiver = try ReceiverProcess()
        try receiver.send(
            "linux_gpsd_location",
            on: "2026-11-21",
            [("01:00:00", #""latitude":47,"longitude":-68"#)]
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/2026-11-21", with: "the site’s offset, UTC-05:00")
        #expect(html.contains(#"<html lang="en" data-zone="UTC" data-open="">"#))
        #expect(html.contains(#"<option value="" selected="">this browser’s zone</option>"#))
        let (days, half) = ("from=2026-11-01&to=2026-11-07", "%2B05%3A30")
        for (query, location) in [
            ("\(days)&zone=Europe%2FBerlin", "2026-11-01..2026-11-07?zone=Europe%2FBerlin"),
            ("from=2026-11-07&to=2026-11-01&zone=", "2026-11-01..2026-11-07"),
            ("from=2026-11-07&to=2026-11-07&zone=UTC&offset=", "2026-11-07?zone=UTC"),
            ("\(days)&zone=UTC&offset=\(half)", "2026-11-01..2026-11-07?zone=\(half)"),
            ("offset=%0D%0AX:y", "2026-11-21?zone=%0D%0AX%3Ay"),
        ] {
            let answer = try browser.get("/device/d1/2026-11-21?\(query)")
            #expect(answer.status == 303)
            #expect(answer.header.contains("Location: /device/d1/\(location)\r\n"), "\(query)")
        }
        for query in ["from=x&to=2026-11-01", "from=2024-01-01&to=2026-11-01", "from=&to="] {
            #expect(try browser.get("/device/d1/2026-11-21?\(query)").status == 400, "\(query)")
        }
        let chosen = try browser.get("/device/d1/2026-11-21?zone=\(half)").body
        #expect(chosen.contains(#"<option value="+05:30" selected="">UTC+05:30</option>"#))
        #expect(try browser.get("/device/d1/2011-12-30?zone=Pacific/Apia").status == 404)
    }

    /// The script does not go on to the browser's zone where it would come back.
    @Test func zoneThatIsNotKnown_isNamed_andTimesAreInUTC() throws {
        let receiver = try ReceiverProcess()
        try receiver.send("weather", on: "2026-11-21", [("01:00:00", #""t":1"#)])
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/2026-11-21", with: "1 record in")
        let long = String(repeating: "x", count: 900)
        for zone in ["Mars/%3Cb%3E", "..%2F..%2Fetc%2Fpasswd", long] {
            let html = try browser.get("/device/d1/2026-11-21?zone=\(zone)").body
            #expect(html.contains("This server does not know the time zone"), "\(zone)")
            #expect(html.contains(#"<html lang="en" data-zone="UTC">"#))
            #expect(html.contains("1 record in"))
        }
        let folder = TemporaryFolder()
        let none = ZoneChoice(["zone": ""], folder: folder.path)
        #expect(none.note?.contains("tzdata") == true && !none.isOpen && none.zone.name == "UTC")
        #expect(ZoneChoice(["zone": " 05:30"], folder: folder.path).zone.name == "+05:30")
        #expect(ZoneChoice([:]).isOpen && ZoneChoice([:]).note == nil)
    }

    @Test(arguments: [
        (-180.0, "-12:00"), (-68, "-05:00"), (-7.4, "+00:00"), (6.8, "+00:00"), (7.6, "+01:00"),
        (85.3, "+06:00"), (180, "+12:00"),
    ])
    func siteOffset_isThatOfItsLongitude(_ longitude: Double, _ offset: String) {
        #expect(ZoneChoice.offset(ofLongitude: longitude) == offset)
        #expect(TimeZoneRules(offset) != nil)
    }

    /// All days' fixes are one track, also as GPX.
    @Test func track_isThatOfAllDays() throws {
        let receiver = try ReceiverProcess()
        for (day, north) in [("2026-11-20", 0), ("2026-11-21", 1), ("2026-11-22", 2)] {
            let fixes = (0..<20).map { number in
                let latitude = 47.0 + Double(north) / 100 + Double(number) / 1e4
                return (80_000 + number * 60, #""latitude":\#(latitude),"longitude":8.5"#)
            }
            try receiver.send("linux_gpsd_location", on: day, fixes)
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let days = "/device/d1/2026-11-20..2026-11-22"
        let html = try browser.page("\(days)?zone=UTC", with: "60 fixes from")
        #expect(html.contains("2 gaps (dashed)") && !html.contains("Stayed"))
        #expect(html.contains(#"-track="1795212800000,47.000000,8.500000 "#))
        let gpx = try browser.get("\(days)/linux_gpsd_location.gpx?zone=UTC")
        #expect(gpx.header.contains(#"filename="d1-2026-11-20..2026-11-22.gpx""#))
        #expect(gpx.body.components(separatedBy: "<trkpt").count == 61)
        // The local day has the evening of one UTC day and no more.
        let local = "/device/d1/2026-11-22/linux_gpsd_location.gpx?zone=Pacific%2FAuckland"
        #expect(try browser.get(local).body.components(separatedBy: "<trkpt").count == 21)
    }

    /// Within 50 m, or three times the accuracy of a fix.
    @Test func device_thatDidNotMove_isALineAndASmallMap() throws {
        let receiver = try ReceiverProcess()
        func send(_ day: String, _ last: String) throws {
            let fixes = (0..<9).map {
                ($0 * 600, #""latitude":46.4639\#($0),"longitude":6.8457,"horizontal_accuracy":4"#)
            }
            try receiver.send("linux_gpsd_location", on: day, fixes + [(7200, last)])
        }
        try send("2026-11-20", #""latitude":46.46394,"longitude":6.8457"#)
        try send("2026-11-21", #""latitude":46.465,"longitude":6.8457,"horizontal_accuracy":4"#)
        try send("2026-11-22", #""latitude":46.465,"longitude":6.8457,"horizontal_accuracy":90"#)
        let browser = try PageClient(receiver, viewer: "anna")
        let still = try browser.page("/device/d1/2026-11-20", with: "Stayed at ")
        #expect(still.contains(">46.46394, 6.84570</a> within 5 m, 10 fixes from"))
        #expect(still.contains(#"data-tiles="" class="small""#))
        let moved = try browser.page("/device/d1/2026-11-21", with: "10 fixes from")
        #expect(!moved.contains("Stayed") && moved.contains(#"data-tiles="" class="""#))
        _ = try browser.page("/device/d1/2026-11-22", with: "within 117 m, 10 fixes from")
    }

    @Test func batteries_haveDistinctNames() {
        #expect(Quantities.split("battery_percent") == ("battery charge", "%"))
        #expect(Quantities.split("battery_mv") == ("battery voltage", "mV"))
        #expect(Quantities.split("battery") == ("battery", ""))
        #expect(Quantities.split("pressure_pa") == ("pressure", "Pa"))
        #expect(Quantities.shown("pressure_pa") == ("pressure", "hPa", 0.01))
        #expect(Quantities.shown("pressure_hpa") == ("pressure", "hPa", 1))
    }
}
