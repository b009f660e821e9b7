// The footer of a time zone's file: the rule of the years after its last change.
import Host

/// A zone's offset and summer time of each year, in the form of POSIX's TZ: `CET-1CEST,M3.5.0,M10.5.0/3`.
///
/// Dates are weekdays, as all of the database are; `J60` and `59` are not read.
struct YearlyRule: Sendable {
    /// `M3.5.0/3`: the last (5) Sunday (0) of March at 3 o'clock.
    private struct Change {
        let (month, week, weekday, time): (Int64, Int64, Int64, Int64)

        init?(_ text: Substring) {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            let date = (parts.first ?? "").dropFirst().split(separator: ".").compactMap {
                Int64($0)
            }
            guard text.first == "M", date.count == 3, parts.count < 3, (1...12).contains(date[0]),
                (1...5).contains(date[1]), (0...6).contains(date[2]),
                let time = parts.count == 1 ? 7200 : YearlyRule.seconds(parts[1])
            else { return nil }
            (month, week, weekday, self.time) = (date[0], date[1], date[2], time)
        }

        /// Returns the local time of the change as if it was UTC.
        func local(in year: Substring) -> Int64 {
            let name = Words.twoDigits(month)
            let first = (Day("\(year)-\(name)-01")?.start ?? 0) / Day.milliseconds
            // 1970 began on a Thursday.
            let begins = first + 4 - (first + 4).floorDivided(by: 7) * 7
            let day = first + (weekday - begins + 7) % 7 + 7 * (week - 1)
            let isInMonth = Day(of: day * Day.milliseconds).name.dropFirst(5).hasPrefix(name)
            return (isInMonth ? day : day - 7) * 86_400 + time
        }
    }

    /// Seconds; no zone is further from UTC.
    private static let most: Int64 = 93_600

    private let standard: Int64
    private var summer: (offset: Int64, from: Change, to: Change)?

    /// Nil if it is not valid.
    init?(_ text: String) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let names = Self.names(parts.first ?? "")
        guard let first = names.first, let standard = first, abs(standard) < Self.most else {
            return nil
        }
        self.standard = standard
        guard names.count > 1 || parts.count > 1 else { return }
        guard names.count == 2, parts.count == 3, let from = Change(parts[1]),
            let to = Change(parts[2])
        else { return nil }
        let offset = names[1] ?? standard + 3600
        guard abs(offset) < Self.most else { return nil }
        summer = (offset, from, to)
    }

    /// Parses `CET-1CEST` or `<+03>-3` into the offset of each name, nil for one without; empty if
    /// it is not valid.
    private static func names(_ text: Substring) -> [Int64?] {
        var (rest, found): (Substring, [Int64?]) = (text, [])
        while let first = rest.first {
            let isQuoted = first == "<"
            let name = rest.prefix { isQuoted ? $0 != ">" : $0.isLetter }
            guard name.count > 2 else { return [] }
            rest = rest.dropFirst(name.count + (isQuoted ? 1 : 0))
            let number = rest.prefix { "+-:0123456789".contains($0) }
            rest = rest.dropFirst(number.count)
            let west = number.isEmpty ? nil : seconds(number)
            guard number.isEmpty || west != nil else { return [] }
            found.append(west.map { -$0 })
        }
        return found
    }

    /// Parses `[+-]hh[:mm[:ss]]` into seconds; hours go up to 167 (RFC 8536, 3.3.1).
    private static func seconds(_ text: Substring) -> Int64? {
        let parts = text.drop { "+-".contains($0) }.split(separator: ":")
        let numbers = parts.compactMap { Int64($0) }.filter { (0...167).contains($0) }
        guard (1...3).contains(parts.count), numbers.count == parts.count else { return nil }
        let seconds = zip(numbers, [3600, 60, 1]).reduce(0) { $0 + $1.0 * $1.1 }
        return text.first == "-" ? -seconds : seconds
    }

    /// Returns the offset in seconds at a time in seconds since 1970.
    func offset(at time: Int64) -> Int64 {
        guard let summer else { return standard }
        let year = WallTime(milliseconds: (time &+ standard) &* 1000).rfc3339.prefix(4)
        let from = summer.from.local(in: year) - standard
        let to = summer.to.local(in: year) - summer.offset
        // In the south, the summer begins in one year and ends in the next one.
        let isSummer =
            from < to ? time >= from && time < to : time >= from || time < to
        return isSummer ? summer.offset : standard
    }
}
