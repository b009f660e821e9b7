// When a source runs: windows, and a duty cycle inside them.
import Configuration
package import Host

/// A stretch of time in which a schedule's windows are open.
package struct OpenSpan: Sendable, Equatable {
    package var from: WallTime
    package var to: WallTime
    /// The edges as the configuration writes them: `sunrise-1h`, `22:00`.
    package var opens: String
    package var closes: String
}

/// A schedule at one point in time.
package struct ScheduleState: Sendable, Equatable {
    package var isOpen: Bool
    /// The next change; nil if there is none within two days (open) or a year (closed).
    package var next: Change?

    package struct Change: Sendable, Equatable {
        package var at: WallTime
        /// The cause, as the configuration writes it: `sunrise-1h`, `22:00`, `1m/10m`.
        package var cause: String
    }
}

/// The windows and the duty cycle of one source; a pure value.
package struct Schedule: Sendable, Equatable {
    /// Always open if empty.
    package var windows: [ScheduleWindow]
    package var duty: DutyCycle?
    /// Minutes east of UTC of the windows' times of day.
    package var offset: Int

    /// How far ahead the next opening is looked for.
    private static let horizon: Int64 = 366
    private static let day: Int64 = 86_400_000
    /// A longer window between a time and an event of the sun means that they have passed each
    /// other.
    private static let longestMixed: Int64 = 20 * 3_600_000

    package init(windows: [ScheduleWindow] = [], duty: DutyCycle? = nil, offset: Int = 0) {
        (self.windows, self.duty, self.offset) = (windows, duty, offset)
    }

    package var isAlways: Bool { windows.isEmpty && duty == nil }

    /// Whether its times depend on the position.
    package var needsSun: Bool { windows.contains { $0.needsSun } }

    // MARK: At one time

    /// Returns whether it is open at `time`, and its next change.
    ///
    /// `position` is used by windows of the sun; without one, they never open.
    package func state(at time: WallTime, position: SitePosition?) -> ScheduleState {
        guard let span = openSpan(at: time, position) else {
            return ScheduleState(isOpen: false, next: opening(after: time, position))
        }
        let end = span.to < time + .days(2) ? span.to : nil
        let closing = end.map { ScheduleState.Change(at: $0, cause: span.closes) }
        guard let duty else { return ScheduleState(isOpen: true, next: closing) }
        if let pause = duty.end(at: time) {
            let isFirst = end.map { pause < $0 } ?? true
            return ScheduleState(
                isOpen: true,
                next: isFirst ? .init(at: pause, cause: duty.text) : closing
            )
        }
        return ScheduleState(isOpen: false, next: opening(after: time, position))
    }

    private func openSpan(at time: WallTime, _ position: SitePosition?) -> OpenSpan? {
        spans(from: time, to: time + .days(3), position).first { $0.from <= time && time < $0.to }
    }

    /// Returns the first opening after `time`, which is closed.
    private func opening(after time: WallTime, _ position: SitePosition?) -> ScheduleState.Change? {
        for day in stride(from: 0, to: Self.horizon, by: 3) {
            let from = time + .days(Int(day))
            for span in spans(from: from, to: from + .days(3), position) {
                let start = max(span.from, time)
                guard let duty, duty.end(at: start) == nil || start == time else {
                    if start > time { return .init(at: start, cause: span.opens) }
                    continue
                }
                let next = duty.next(after: start)
                if next < span.to { return .init(at: next, cause: duty.text) }
            }
        }
        return nil
    }

    // MARK: Over a time

    /// Returns the open spans of the windows that touch a time, merged and in order, without the
    /// duty cycle.
    ///
    /// Spans at the ends of that time may be incomplete by more than a day before or after it.
    package func spans(from: WallTime, to: WallTime, _ position: SitePosition?) -> [OpenSpan] {
        guard !windows.isEmpty else {
            return [OpenSpan(from: from + .days(-3), to: to + .days(3), opens: "", closes: "")]
        }
        let days = (from.utcDay - 3)...(to.utcDay + 2)
        let all = windows.flatMap { window in days.compactMap { span(window, $0, position) } }
        var merged: [OpenSpan] = []
        for span in all.sorted(by: { $0.from < $1.from }) {
            guard let last = merged.last, span.from <= last.to else {
                merged.append(span)
                continue
            }
            if span.to > last.to {
                merged[merged.count - 1].to = span.to
                merged[merged.count - 1].closes = span.closes
            }
        }
        return merged.filter { $0.from < to && from < $0.to }
    }

    /// Returns the stretches between two times in which the source is to run, duty cycle included.
    ///
    /// The last of `limit` stretches holds all that follow.
    package func openTimes(
        from: WallTime,
        to: WallTime,
        _ position: SitePosition?,
        limit: Int = .max
    ) -> [(from: WallTime, to: WallTime)] {
        var (times, time) = ([(from: WallTime, to: WallTime)](), from)
        while time < to {
            let state = state(at: time, position: position)
            // An open state without a change lasts for two days at least.
            let following = state.next?.at ?? (state.isOpen ? time + .days(2) : to)
            let next = state.isOpen && times.count + 1 >= limit ? to : min(following, to)
            if state.isOpen, let last = times.last, last.to == time {
                times[times.count - 1].to = next
            } else if state.isOpen {
                times.append((time, next))
            }
            mustHold(next > time, "the next change comes later")
            time = next
        }
        return times
    }

    /// Returns the time between two times in which the source is to run, in milliseconds.
    package func openLength(from: WallTime, to: WallTime, _ position: SitePosition?) -> Int64 {
        let length: Int64 = spans(from: from, to: to, position).reduce(0) { sum, span in
            let (start, end) = (max(span.from, from), min(span.to, to))
            return sum
                + (duty?.length(from: start, to: end) ?? end.milliseconds - start.milliseconds)
        }
        let whole = max(0, to.milliseconds - from.milliseconds)
        invariant((0...whole).contains(length), "a part is no longer than the whole time")
        return length
    }

    /// Returns the window's span that begins on a day; nil if it does not open then.
    private func span(_ window: ScheduleWindow, _ day: Int64, _ position: SitePosition?)
        -> OpenSpan?
    {
        guard let from = time(of: window.opens, day, position),
            let to = end(of: window, from, day, position), from < to
        else { return nil }
        return OpenSpan(from: from, to: to, opens: window.opens.text, closes: window.closes.text)
    }

    private func end(
        of window: ScheduleWindow,
        _ from: WallTime,
        _ day: Int64,
        _ position: SitePosition?
    ) -> WallTime? {
        switch (window.opens, window.closes) {
        case (.time(let start), .time(let end)):
            return time(of: window.closes, end > start ? day : day + 1, position)
        case (.sun(let first, let before), .sun(let last, let after)):
            let isSameDay = ScheduleWindow.isSameDay(first, before, last, after)
            return time(of: window.closes, isSameDay ? day : day + 1, position)
        default:
            let ends = ((day - 2)...(day + 2)).compactMap { time(of: window.closes, $0, position) }
            let end = ends.first { $0 > from }
            return end.flatMap {
                $0.milliseconds - from.milliseconds <= Self.longestMixed ? $0 : nil
            }
        }
    }

    private func time(of edge: WindowEdge, _ day: Int64, _ position: SitePosition?) -> WallTime? {
        switch edge {
        case .time(let minutes):
            WallTime(milliseconds: day * Self.day + Int64(minutes - offset) * 60_000)
        case .sun(let event, let offset):
            position.map { SolarDay(day, at: $0)[event] + offset }
        }
    }
}
