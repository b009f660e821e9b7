// Time zones: the system's database, offsets, the ends of days, and names that lead nowhere.
import Foundation
import Support
import Testing

@testable import ServerBase

@Suite struct TimeZoneTests {
    private static let zones = [
        "UTC", "Europe/Berlin", "Europe/Dublin", "America/St_Johns", "Asia/Kathmandu",
        "Pacific/Auckland", "Pacific/Apia", "Australia/Lord_Howe", "America/Santiago",
    ]

    private let folder = TemporaryFolder("zones/Europe")

    private func rules(_ name: String) throws -> TimeZoneRules {
        try #require(TimeZoneRules(name), "\(name) of tzdata")
    }

    /// Foundation has a database of its own; from 2038 on the rule in the footer counts.
    @Test(arguments: zones)
    func offsets_areThoseOfFoundation(_ name: String) throws {
        let (rules, zone) = (try rules(name), try #require(TimeZone(identifier: name)))
        for hour in stride(from: 0, to: 100 * 8766, by: 31) as StrideTo<Int64> {
            let seconds = 946_684_800 + hour * 3600
            let offset = zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))
            let local = Words.second((seconds + Int64(offset)) * 1000)
            #expect(rules.second(seconds * 1000) == local, "\(seconds)")
        }
    }

    /// A day of 23 and of 25 hours, and days that begin at a quarter or after a skipped midnight.
    @Test(arguments: [
        ("UTC", "2026-03-29", "2026-03-29T00:00:00Z", 24.0),
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", 23),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", 25),
        ("America/St_Johns", "2026-11-01", "2026-11-01T02:30:00Z", 25),
        ("Asia/Kathmandu", "2026-11-22", "2026-11-21T18:15:00Z", 24),
        ("Pacific/Auckland", "2026-09-27", "2026-09-26T12:00:00Z", 23),
        ("Pacific/Auckland", "2060-04-04", "2060-04-03T11:00:00Z", 25),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", 24.5),
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", 23),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z", 0),
        ("+05:45", "2026-11-22", "2026-11-21T18:15:00Z", 24),
        ("-03:30", "2026-11-22", "2026-11-22T03:30:00Z", 24),
    ])
    func day_beginsAndEndsAtLocalMidnight(
        _ name: String,
        _ day: String,
        _ start: String,
        _ hours: Double
    ) throws {
        let (rules, day) = (try rules(name), try #require(Day(day)))
        let found = rules.time(day)
        #expect(Day(of: found).name + "T" + Words.second(found).suffix(8) + "Z" == start)
        #expect(Double(rules.time(day, hours: 24) - found) == hours * 3_600_000)
        guard hours > 0 else { return }
        #expect(rules.day(of: found) == day && rules.day(of: found - 1) != day)
    }

    @Test func name_isThatOfAFileOfTheDatabase_orNone() throws {
        let berlin = try Data(contentsOf: URL(fileURLWithPath: "/usr/share/zoneinfo/Europe/Berlin"))
        let zones = folder.path + "/zones"
        try berlin.write(to: URL(fileURLWithPath: zones + "/Europe/Berlin"))
        try berlin.write(to: URL(fileURLWithPath: folder.path + "/Secret"))
        _ = try folder.write("CET", to: "zones/text")
        for (link, target) in [
            ("Link", "Europe/Berlin"), ("Outside", "../Secret"), ("Loop", "Loop"),
        ] { #expect(symlink(target, "\(zones)/\(link)") == 0) }
        #expect(mkfifo("\(zones)/Pipe", 0o600) == 0)
        for name in ["Europe/Berlin", "Link", "Europe//Berlin"] {
            #expect(TimeZoneRules(name, folder: zones) != nil, "\(name)")
        }
        for name in [
            "", "Outside", "Loop", "Pipe", "text", "Europe", "Europe/", "../Secret",
            "Europe/../Europe/Berlin", "/etc/passwd", "\(zones)/Europe/Berlin", "Europe/Berlin\0",
            "Europe/B%65rlin", "utc", "Z", "+1:00", "+24:00", "+01:60", "+0100", "++1:00", "1:00",
            ".1234Z", String(repeating: "A", count: 65),
        ] { #expect(TimeZoneRules(name, folder: zones) == nil, "\(name)") }
        // Leap seconds would shift all times.
        #expect(TimeZoneRules("right/Europe/Berlin") == nil)
    }

    /// No file ends the server, whatever is in it.
    @Test func fileThatIsNotValid_isNone() throws {
        let path = URL(fileURLWithPath: "/usr/share/zoneinfo/Europe/Berlin")
        let whole = Array(try Data(contentsOf: path))
        #expect(ZoneFile(whole) != nil)
        for count in 0..<whole.count { #expect(ZoneFile(Array(whole.prefix(count))) == nil) }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Bool.random() ? Int.random(in: 0..<44) : bytes.indices.randomElement()
                bytes[place ?? 0] = UInt8.random(in: 0...255, using: &random)
            }
            guard let file = ZoneFile(bytes) else { continue }
            let times: [Int64] = [.min / 1000, -1, 0, 1_800_000_000, 4_000_000_000, .max / 1000]
            for time in times {
                #expect(abs(file.offset(at: time)) < 100_000)
            }
        }
    }

    @Test(
        arguments: [
            ("CET-1CEST,M3.5.0,M10.5.0/3", 7200), ("IST-1GMT0,M10.5.0,M3.5.0/1", 3600),
            ("<-03>3", -10_800), ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 37_800),
            ("EST5EDT4,M3.2.0,M11.1.0/-1:30", -14_400), ("EST5EDT,J60,J300", nil),
            ("", nil), ("CET", nil), ("CET-1CEST", nil), ("CET-1CEST,M3.5.0", nil), ("C-1", nil),
            ("CET-1CEST,M13.5.0,M10.5.0", nil), ("CET-1CEST,M3.6.0,M10.5.0", nil), ("CET-200", nil),
            ("CET-1CEST,M3.5.0,M10.5.0x", nil), ("<CET-1", nil), ("CET-1:x", nil),
            ("CET-1CEST,M3.5.0/1:x,M10.5.0", nil), ("CET-99999999999999999999", nil),
        ] as [(String, Int64?)]
    )
    func yearlyRule_isReadOrNone(_ text: String, _ offset: Int64?) {
        // 30 June 2060.
        #expect(YearlyRule(text)?.offset(at: 2_855_779_200) == offset)
    }
}
