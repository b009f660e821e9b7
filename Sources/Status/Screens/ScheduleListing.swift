// The recordings that the schedules plan for the next days, as JSON (waypost(1), `schedule --json`).
package import Host
package import Schedule

/// The windows of all sources and the sun's times, for whole days of UTC.
package struct ScheduleListing: Encodable, Sendable {
    package struct Window: Encodable, Sendable {
        package var from: WallTime
        package var to: WallTime
        /// The edges as the configuration writes them.
        package var opens: String
        package var closes: String
    }

    package struct Source: Encodable, Sendable {
        package var schedule: [String]
        package var duty: String?
        package var always: Bool
        /// The time in which it runs, by the duty cycle, too.
        package var recordedS: Int64
        package var windows: [Window]

        fileprivate init(
            _ schedule: Schedule,
            _ place: SitePosition?,
            from: WallTime,
            to: WallTime
        ) {
            self.schedule = schedule.windows.map(\.text)
            duty = schedule.duty?.text
            always = schedule.isAlways
            recordedS = schedule.openLength(from: from, to: to, place) / 1000
            let spans = schedule.windows.isEmpty ? [] : schedule.spans(from: from, to: to, place)
            windows = spans.map {
                Window(from: $0.from, to: $0.to, opens: $0.opens, closes: $0.closes)
            }
        }
    }

    package struct Sun: Encodable, Sendable {
        package var date: String
        package var dawn: WallTime
        package var sunrise: WallTime
        package var noon: WallTime
        package var sunset: WallTime
        package var dusk: WallTime

        fileprivate init(_ day: SolarDay) {
            date = String(day[.noon].rfc3339.prefix(10))
            dawn = day[.dawn]
            sunrise = day[.sunrise]
            noon = day[.noon]
            sunset = day[.sunset]
            dusk = day[.dusk]
        }
    }

    package var position: StatusReport.SchedulePlace?
    package var from: WallTime
    package var to: WallTime
    package var sources: [String: Source] = [:]
    package var sun: [Sun] = []

    /// `sources` are those that are enabled, with their schedules; the first day is that of `now`.
    package init(
        _ sources: [(name: SourceName, schedule: Schedule)],
        _ place: SitePosition?,
        days: Int,
        now: WallTime
    ) {
        position = place.map { .init(latitude: $0.latitude, longitude: $0.longitude) }
        from = WallTime(milliseconds: now.utcDay * 86_400_000)
        to = from + .seconds(86_400 * days)
        for (name, schedule) in sources {
            self.sources[name.rawValue] = Source(schedule, place, from: from, to: to)
        }
        guard let place else { return }
        sun = (0..<days).map { Sun(SolarDay(now.utcDay + Int64($0), at: place)) }
    }
}
