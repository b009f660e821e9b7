// Formats times, spans and sizes for the page.
import Host

package enum Words {
    /// Formats `2026-11-22 16:20`, in UTC.
    package static func minute(_ milliseconds: Int64) -> String {
        String(second(milliseconds).prefix(16))
    }

    /// Formats `2026-11-22 16:20:05`, in UTC.
    package static func second(_ milliseconds: Int64) -> String {
        let text = WallTime(milliseconds: milliseconds).rfc3339
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(8))"
    }

    /// Formats the two largest units: `2 d 5 h`, `12 min`.
    package static func span(seconds: Int64) -> String {
        let seconds = max(0, seconds)
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
        func with(_ rest: Int64, _ unit: String) -> String { rest > 0 ? " \(rest) \(unit)" : "" }
        if days > 0 { return "\(days) d" + with(hours % 24, "h") }
        if hours > 0 { return "\(hours) h" + with(minutes % 60, "min") }
        return minutes > 0 ? "\(minutes) min" : "\(seconds) s"
    }

    /// Formats `1.2 GB`.
    package static func bytes(_ count: Double) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var (rest, unit) = (max(0, count), 0)
        while rest >= 1000, unit < units.count - 1 { (rest, unit) = (rest / 1000, unit + 1) }
        return "\(decimal(rest, unit == 0 || rest >= 100 ? 0 : 1)) \(units[unit])"
    }

    /// Formats a number with `digits` decimals.
    package static func decimal(_ number: Double, _ digits: Int) -> String {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        // A device may send any number, but Int64 is limited.
        guard number.isFinite, abs(number) * scale < 9e18 else { return "–" }
        let whole = Int64((abs(number) * scale).rounded())
        let sign = number < 0 && whole > 0 ? "-" : ""
        let (front, back) = whole.quotientAndRemainder(dividingBy: Int64(scale))
        guard digits > 0 else { return "\(sign)\(front)" }
        let zeros = String(repeating: "0", count: digits - "\(back)".count)
        return "\(sign)\(front).\(zeros)\(back)"
    }

    /// Formats `07`, with at least two digits.
    package static func twoDigits(_ number: some BinaryInteger) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }

    /// Formats `12 345`, with narrow no-break spaces.
    package static func count(_ number: Int64) -> String {
        var digits = Array(String(abs(number)))
        for place in stride(from: digits.count - 3, to: 0, by: -3) {
            digits.insert("\u{202F}", at: place)
        }
        return (number < 0 ? "-" : "") + String(digits)
    }

    /// Formats `1 fix`, `12 345 fixes`.
    package static func count(_ number: Int64, _ one: String, _ many: String) -> String {
        "\(count(number)) \(number == 1 ? one : many)"
    }
}
