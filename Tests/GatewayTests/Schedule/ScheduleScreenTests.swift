// The text of `waypost schedule` in the site's time.
import Host
import Schedule
import Status
import Testing

@Suite struct ScheduleScreenTests {
    private func text(_ place: String, _ now: String, offset: Int) throws -> String {
        let windows = [try ScheduleWindow.parse("05:00..07:00").get()]
        let schedule = Schedule(windows: windows, duty: nil, offset: offset)
        let now = try #require(WallTime(rfc3339: now))
        let position = try #require(SitePosition(place))
        return ScheduleScreen([(.audio, schedule)], position, days: 2, now: now, offset: offset)
            .text
    }

    /// Drawn as 15:56 to 18:56 of the day before, once.
    @Test func times_areThoseOfTheOffset() throws {
        let lines = try text("-36.9,174.8", "2026-11-28T12:30:00Z", offset: 780)
            .split(separator: "\n").map(String.init)
        #expect(lines[0].hasSuffix("times in UTC+13:00 (schedule_offset)"))
        let chart = lines.filter { $0.hasPrefix("2026-11-29  ..........####....") }
        #expect(chart.count == 1 && chart.allSatisfy { $0.hasSuffix(" 2.0 h") }, "\(lines)")
        #expect(lines.contains { $0.hasSuffix("05:00-07:00") })
        // All of one day: sunrise at 05:54, sunset at 20:21.
        let sun = try #require(lines.last { $0.hasPrefix("2026-11-29") })
        #expect(
            sun.contains("05:5") && sun.contains("20:2") && !sun.contains("+")
                && !sun.contains("-1 ")
        )
    }

    @Test func sunOfAnotherDay_saysSo() throws {
        let east = try text("-16.5,179.9", "2026-11-28T12:30:00Z", offset: 0)
        let row = try #require(east.split(separator: "\n").last { $0.hasPrefix("2026-11-29") })
        #expect(row.contains("-1 "), "\(row)")
        #expect(east.contains("times in UTC\n"))
        // The polar day has its dawn at the midnight before.
        let north = try text("78.2,15.6", "2026-06-20T12:30:00Z", offset: 0)
        let light = try #require(north.split(separator: "\n").last { $0.hasPrefix("2026-06-20") })
        #expect(light.contains("22:5") && light.contains("-1 "), "\(light)")
    }
}
