// The recordings that the schedules plan for the next days, as text and a chart of 80 columns.
import Configuration
package import Host
package import Schedule

/// Renders the schedules of all sources; days and times have the site's offset from UTC.
package struct ScheduleScreen {
    private static let width = 79
    /// Half hours of a day: one column each.
    private static let columns = 48

    private let sources: [(name: SourceName, schedule: Schedule)]
    private let place: SitePosition?
    private let days: Range<Int64>
    /// Minutes east of UTC.
    private let offset: Int

    /// `sources` are those that are enabled; the first day is that of `now`; `offset`: minutes
    /// east of UTC.
    package init(
        _ sources: [(name: SourceName, schedule: Schedule)],
        _ place: SitePosition?,
        days: Int,
        now: WallTime,
        offset: Int = 0
    ) {
        (self.sources, self.place, self.offset) = (sources, place, offset)
        let today = (now + .seconds(60 * offset)).utcDay
        self.days = today..<today + Int64(days)
    }

    package var text: String {
        let position = place.map { "position \($0.text)" } ?? "no position known"
        let zone = offset == 0 ? "UTC" : "UTC\(offsetText(offset)) (schedule_offset)"
        let head =
            "\(position); times in \(zone)\n# recording, + for a part of the half hour, . off"
        let blocks = sources.map { chart($0.name, $0.schedule) } + [sun]
        return ([[head]] + blocks.filter { !$0.isEmpty })
            .map { $0.joined(separator: "\n") + "\n" }.joined(separator: "\n")
    }

    private func chart(_ name: SourceName, _ schedule: Schedule) -> [String] {
        guard !schedule.isAlways else { return [name.rawValue.column(10) + "always"] }
        let rule = schedule.windows.map(\.text).joined(separator: ", ")
        let parts = [rule, schedule.duty?.text ?? ""].filter { !$0.isEmpty }
        let title = indented(parts.joined(separator: "; "), name.rawValue.column(10))
        guard place != nil || !schedule.needsSun else {
            return title + [
                indent + "set location.fixed: without a position it records all the time"
            ]
        }
        let hours = stride(from: 0, through: 24, by: 3).map { "\($0)".column(6) }.joined()
        return title + ["".column(12) + trimmed(hours)] + days.flatMap { day(schedule, $0) }
    }

    private let indent = "".column(10)

    private func day(_ schedule: Schedule, _ day: Int64) -> [String] {
        let start = start(of: day)
        let half: Int64 = 1_800_000
        var line = ""
        for column in 0..<Self.columns {
            let from = start + .milliseconds(Int64(column) * half)
            let open = schedule.openLength(from: from, to: from + .milliseconds(half), place)
            line += open == 0 ? "." : open == half ? "#" : "+"
        }
        let sum = schedule.openLength(from: start, to: start + .seconds(86_400), place)
        let hours = rounded(Double(sum) / 3_600_000, 10)
        return [date(start).column(12) + line + "\(hours) h".rightColumn(8)]
            + spans(schedule, start)
    }

    /// Returns the windows of a day, each clipped to it.
    private func spans(_ schedule: Schedule, _ start: WallTime) -> [String] {
        let end = start + .seconds(86_400)
        guard !schedule.windows.isEmpty else { return [] }
        let spans = schedule.spans(from: start, to: end, place).map { span in
            let to = span.to >= end ? "24:00" : time(span.to)
            return "\(time(max(span.from, start)))-\(to)"
        }
        return indented(spans.isEmpty ? "closed" : spans.joined(separator: ", "), "".column(12))
    }

    private var sun: [String] {
        guard let place else { return [] }
        let names = SunEvent.allCases.map { $0.rawValue.column(9) }.joined()
        return [trimmed("sun".column(12) + names)]
            + days.map { number in
                let day = SolarDay(number, at: place)
                let times = SunEvent.allCases.map { time(day[$0], on: number).column(9) }.joined()
                return date(start(of: number)).column(12) + trimmed(times)
            }
    }

    private func start(of day: Int64) -> WallTime {
        WallTime(milliseconds: day * 86_400_000) + .seconds(-60 * offset)
    }

    private func indented(_ text: String, _ first: String) -> [String] {
        text.wrapped(to: Self.width - first.count, breakingWords: true).enumerated()
            .map { ($0.offset == 0 ? first : "".column(first.count)) + $0.element }
    }

    private func local(_ time: WallTime) -> WallTime { time + .seconds(60 * offset) }

    private func date(_ time: WallTime) -> String { String(local(time).rfc3339.prefix(10)) }

    private func time(_ time: WallTime) -> String {
        String(local(time).rfc3339.dropFirst(11).prefix(5))
    }

    /// Returns a time with `-1` or `+1` if it is on the day before or after `day`.
    private func time(_ time: WallTime, on day: Int64) -> String {
        let days = local(time).utcDay - day
        return self.time(time) + (days == 0 ? "" : days > 0 ? "+\(days)" : "\(days)")
    }
}
