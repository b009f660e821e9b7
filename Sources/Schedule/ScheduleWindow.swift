// One window of a schedule as the configuration writes it: `sunrise-1h..sunrise+3h`.
import Configuration
package import Host

/// One end of a window: a time of day, or an event of the sun with an offset.
package enum WindowEdge: Sendable, Equatable {
    /// Minutes since midnight by `schedule_offset`; 1440 is the end of the day.
    case time(Int)
    case sun(SunEvent, offset: Duration)

    /// The farthest that an edge may be from its event.
    private static let farthest = Duration.seconds(12 * 3600)

    /// Parses `04:30`, `sunset` or `sunrise-1h`.
    static func parse(_ text: String) -> Result<Self, MismatchError> {
        if text.first?.isNumber == true {
            guard let minutes = minutes(ofTime: text) else {
                return .mismatch("\"\(printable(text))\" is not a time; write HH:MM")
            }
            return .success(.time(minutes))
        }
        let name = String(text.prefix { !"+-".contains($0) })
        guard let event = SunEvent(rawValue: name) else {
            let near = nearest(to: name, among: SunEvent.allCases.map(\.rawValue))
            let hint = near.map { "; did you mean \($0)?" } ?? ""
            return .mismatch("\"\(printable(name))\" is not an event of the sun" + hint)
        }
        let rest = String(text.dropFirst(name.count))
        guard let sign = rest.first else { return .success(.sun(event, offset: .zero)) }
        guard let length = duration(of: String(rest.dropFirst())) else {
            return .mismatch("\"\(printable(rest))\" is not an offset; write it as -30m or +1h")
        }
        guard length <= farthest else {
            return .mismatch("\"\(printable(rest))\" is more than 12h")
        }
        return .success(.sun(event, offset: sign == "-" ? .zero - length : length))
    }

    /// The form that `parse` reads.
    package var text: String {
        switch self {
        case .time(let minutes): timeText(minutes)
        case .sun(let event, .zero): event.rawValue
        case .sun(let event, let offset):
            event.rawValue
                + (offset < .zero ? "-" + durationText(.zero - offset) : "+" + durationText(offset))
        }
    }

    var isOfSun: Bool { if case .sun = self { true } else { false } }
}

/// A window `A..B`: open from A to the next B.
package struct ScheduleWindow: Sendable, Equatable {
    package let opens: WindowEdge
    package let closes: WindowEdge

    /// Parses `A..B`; blanks around its parts are ignored.
    package static func parse(_ text: String) -> Result<Self, MismatchError> {
        let compact = text.filter { $0 != " " }
        guard compact.utf8.count <= 64, let dots = compact.firstRange(ofPart: "..") else {
            return .mismatch("\"\(printable(text))\" is not a window; write it as A..B")
        }
        let opens = WindowEdge.parse(String(compact[..<dots.lowerBound]))
        let closes = WindowEdge.parse(String(compact[dots.upperBound...]))
        switch (opens, closes) {
        case (.failure(let mismatch), _), (_, .failure(let mismatch)):
            return .mismatch("in \"\(printable(text))\": \(mismatch.message)")
        case (.success(let opens), .success(let closes)):
            let window = Self(opens: opens, closes: closes)
            if let problem = window.problem {
                return .mismatch("\"\(printable(text))\" \(problem)")
            }
            return .success(window)
        }
    }

    /// Why the window would be never or always open; nil if it is a window.
    private var problem: String? {
        switch (opens, closes) {
        case (.time(1440), _): "begins at 24:00; write 00:00"
        case (.time(let from), .time(let to)) where from == to: "begins and ends at the same time"
        case (.sun(let from, let before), .sun(let to, let after))
        where (from, before) == (to, after):
            "begins and ends at the same time"
        case (.sun(let from, let before), .sun(let to, let after)):
            hasPassed(from, before, to, after)
                ? "has an offset beyond its other end; write one end as HH:MM" : nil
        default: nil
        }
    }

    /// Whether the ends pass each other on a day of twelve hours, as in `noon-8h..sunrise`.
    ///
    /// Such a window lasts longer than a day, or ends before it begins.
    private func hasPassed(
        _ from: SunEvent,
        _ before: Duration,
        _ to: SunEvent,
        _ after: Duration
    ) -> Bool {
        let isSameDay = Self.isSameDay(from, before, to, after)
        let length = to.usual - from.usual + after - before
        return isSameDay ? length <= .zero : length >= .zero
    }

    /// Whether a window between two events, each with its offset, ends on the day on which it opens.
    ///
    /// By their order in the day, not by their times: where the sun does not rise, both are at noon.
    static func isSameDay(
        _ from: SunEvent,
        _ before: Duration,
        _ to: SunEvent,
        _ after: Duration
    ) -> Bool {
        (from.order, before) < (to.order, after)
    }

    package var text: String { "\(opens.text)..\(closes.text)" }

    var needsSun: Bool { opens.isOfSun || closes.isOfSun }
}
