// Times of day and offsets from UTC, as hours and minutes.
import Host

/// Parses `06:00`, up to `24:00`, into minutes; nil for anything else.
package func minutes(ofTime text: some StringProtocol) -> Int? {
    let digits = Array(text.utf8)
    guard digits.count == 5, digits[2] == UInt8(ascii: ":"),
        (digits[..<2] + digits[3...]).allSatisfy(\.isDigit)
    else { return nil }
    let value = digits.map { Int($0) - 48 }
    let minutes = value[3] * 10 + value[4]
    let time = (value[0] * 10 + value[1]) * 60 + minutes
    return minutes < 60 && time <= 1440 ? time : nil
}

/// Parses `UTC` or `+02:00` into minutes east; nil for anything else, and for more than 14 hours,
/// which no zone has.
package func minutes(ofOffset text: some StringProtocol) -> Int? {
    if text == "UTC" { return 0 }
    guard let sign = text.first, "+-".contains(sign), let time = minutes(ofTime: text.dropFirst()),
        time <= 14 * 60
    else { return nil }
    return sign == "-" ? -time : time
}

/// Formats minutes as `06:00`.
package func timeText(_ minutes: Int) -> String {
    [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
}

/// Formats minutes east of UTC as `+02:00`; 0 is `UTC`.
package func offsetText(_ minutes: Int) -> String {
    minutes == 0 ? "UTC" : (minutes < 0 ? "-" : "+") + timeText(abs(minutes))
}
