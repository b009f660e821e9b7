// The numbers in the JSON of a column's values, as far as they can be written again.
import Host

/// Returns the last 12 hexadecimal digits of an id in quotes; nil unless the rest is that of `first`.
func idNumber(_ value: TextBytes, like first: TextBytes) -> Int64? {
    let length = 38
    guard value.count == length, first.count == length, value.prefix(25) == first.prefix(25),
        value[length - 1] == UInt8(ascii: "\"")
    else { return nil }
    var number: Int64 = 0
    for byte in value[25..<length - 1].bytes {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | Int64(byte - 48)
        case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | Int64(byte - 87)
        default: return nil
        }
    }
    return number
}

/// Reads times as `WallTime.rfc3339` writes them, in quotes; most are of the same day.
struct TimeReader {
    /// The value up to the `T`, and its midnight in milliseconds.
    private var day: (text: TextBytes, start: Int64)?

    /// Returns the milliseconds since 1970; nil for another form, and for a time before.
    mutating func milliseconds(_ value: TextBytes) -> Int64? {
        guard value.count == 26, let start = midnight(of: value) else { return nil }
        let time = value[12..<26]
        guard let hours = Self.number(time[0..<2], below: 24), time[2] == UInt8(ascii: ":"),
            let minutes = Self.number(time[3..<5], below: 60), time[5] == UInt8(ascii: ":"),
            let seconds = Self.number(time[6..<8], below: 60), time[8] == UInt8(ascii: "."),
            let rest = Self.number(time[9..<12], below: 1000), time[12] == UInt8(ascii: "Z"),
            time[13] == UInt8(ascii: "\"")
        else { return nil }
        return start + ((hours * 60 + minutes) * 60 + seconds) * 1000 + rest
    }

    private mutating func midnight(of value: TextBytes) -> Int64? {
        if let day, value.prefix(12) == day.text { return day.start }
        let text = String(decoding: value[1..<12].bytes, as: UTF8.self)
        guard let start = WallTime(rfc3339: text + "00:00:00Z"), start.milliseconds >= 0,
            value[0] == UInt8(ascii: "\""), text.hasSuffix("T")
        else { return nil }
        day = (value.prefix(12), start.milliseconds)
        return start.milliseconds
    }

    private static func number(_ digits: TextBytes, below limit: Int64) -> Int64? {
        var number: Int64 = 0
        for digit in digits.bytes {
            guard digit.isDigit else { return nil }
            number = number * 10 + Int64(digit - 48)
        }
        return number < limit ? number : nil
    }
}

/// A number of up to 15 digits without an exponent: binary floating point has each of them.
struct DecimalText {
    /// The number without its point.
    let scaled: Int64
    /// The digits behind the point.
    let scale: Int

    /// Returns nil for anything else, also for -0.
    init?(_ value: TextBytes) {
        let isNegative = value.bytes.first == UInt8(ascii: "-")
        let digits = value[(isNegative ? 1 : 0)..<value.count].bytes
        guard (1...16).contains(digits.count) else { return nil }
        var number: Int64 = 0
        var point: Int?
        for (place, byte) in digits.enumerated() {
            if byte == UInt8(ascii: "."), point == nil {
                point = place
            } else if byte.isDigit {
                number = number * 10 + Int64(byte - 48)
            } else {
                return nil
            }
        }
        let count = digits.count - (point == nil ? 0 : 1)
        // JSON has no number that begins or ends with a point, and none with a zero before digits.
        guard count <= 15, !(isNegative && number == 0) else { return nil }
        scaled = isNegative ? -number : number
        scale = point.map { digits.count - 1 - $0 } ?? 0
    }
}

/// The length of a number as text.
func decimalLength(_ number: Int64) -> Int {
    var (length, rest) = (number < 0 ? 2 : 1, number.magnitude)
    while rest >= 10 {
        rest /= 10
        length += 1
    }
    return length
}
