// Formats and parses RFC 3339 timestamps without a calendar library.

extension WallTime {
    /// Days since 1970-01-01 UTC.
    package var utcDay: Int64 { milliseconds.floorDivided(by: 86_400_000) }

    /// RFC 3339 UTC with milliseconds: `2026-11-21T04:30:07.123Z`.
    package var rfc3339: String {
        String(unsafeUninitializedCapacity: 24) { buffer in
            write(rfc3339To: buffer)
            return 24
        }
    }

    /// Writes the 24 bytes of `rfc3339`; clamps years to 0...9999.
    package func write(rfc3339To buffer: UnsafeMutableBufferPointer<UInt8>) {
        let lowest: Int64 = -62_167_219_200_000
        let highest: Int64 = 253_402_300_799_999
        let clamped = min(max(milliseconds, lowest), highest)
        let days = clamped.floorDivided(by: 86_400_000)
        let inDay = clamped - days * 86_400_000
        let (year, month, day) = Self.civil(fromDays: days)
        var at = 0
        func put(_ value: Int64, _ digits: Int, _ end: UInt8) {
            var rest = value
            for place in stride(from: at + digits - 1, through: at, by: -1) {
                buffer[place] = UInt8(48 + rest % 10)
                rest /= 10
            }
            buffer[at + digits] = end
            at += digits + 1
        }
        put(year, 4, UInt8(ascii: "-"))
        put(month, 2, UInt8(ascii: "-"))
        put(day, 2, UInt8(ascii: "T"))
        put(inDay / 3_600_000, 2, UInt8(ascii: ":"))
        put(inDay / 60_000 % 60, 2, UInt8(ascii: ":"))
        put(inDay / 1000 % 60, 2, UInt8(ascii: "."))
        put(inDay % 1000, 3, UInt8(ascii: "Z"))
    }

    /// Parses `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)` (RFC 3339, section 5.6); nil for anything
    /// else.
    ///
    /// The date must exist. A leap second is allowed only as the last second of a day in UTC and
    /// becomes the second after it. Digits beyond milliseconds are cut off.
    package init?(rfc3339 text: String) {
        var text = DateText(rest: Array(text.utf8)[...])
        guard let year = text.number(4, then: "-"), let month = text.number(2, then: "-"),
            let day = text.number(2), text.skip("Tt"), let hour = text.number(2, then: ":"),
            let minute = text.number(2, then: ":"), let second = text.number(2),
            (1...12).contains(month), day >= 1, day <= Self.days(in: month, of: year), hour < 24,
            minute < 60, second <= 60, let fraction = text.fraction(),
            let offset = text.offsetInMinutes(), text.rest.isEmpty
        else { return nil }
        let minutes = Self.days(fromCivil: year, month, day) * 1440 + hour * 60 + minute - offset
        guard second < 60 || (minutes + 1) % 1440 == 0 else { return nil }
        self.init(milliseconds: (minutes * 60 + second) * 1000 + fraction)
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return switch month {
        case 2: isLeap ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Converts days since 1970-01-01 to a proleptic Gregorian date (`civil_from_days` by Hinnant).
    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted.floorDivided(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthIndex = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthIndex + 2) / 5 + 1
        let month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func days(fromCivil year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted.floorDivided(by: 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }
}

extension Int64 {
    /// Returns the quotient rounded down, also below zero.
    package func floorDivided(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}

/// The part of a timestamp that is not parsed yet.
private struct DateText {
    var rest: ArraySlice<UInt8>

    /// Parses a number of that many digits and the separator after it.
    mutating func number(_ digits: Int, then separator: String = "") -> Int64? {
        let found = rest.prefix(digits)
        guard found.count == digits, found.allSatisfy(\.isDigit) else {
            return nil
        }
        rest = rest.dropFirst(digits)
        guard rest.starts(with: separator.utf8) else { return nil }
        rest = rest.dropFirst(separator.utf8.count)
        return found.reduce(0) { $0 * 10 + Int64($1 - 48) }
    }

    /// Skips one of these characters; returns false if the next one is another.
    mutating func skip(_ characters: String) -> Bool {
        guard let first = rest.first, characters.utf8.contains(first) else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// Parses a fraction into milliseconds; 0 without a fraction, nil if it has no digit.
    mutating func fraction() -> Int64? {
        guard skip(".") else { return 0 }
        let digits = rest.prefix(while: \.isDigit)
        rest = rest.dropFirst(digits.count)
        guard !digits.isEmpty else { return nil }
        return zip(digits, [100, 10, 1] as [Int64]).reduce(0) { $0 + Int64($1.0 - 48) * $1.1 }
    }

    /// Parses `Z` or `+01:30` into minutes.
    mutating func offsetInMinutes() -> Int64? {
        if skip("Zz") { return 0 }
        let isWest = rest.first == UInt8(ascii: "-")
        guard skip("+-"), let hours = number(2, then: ":"), let minutes = number(2), hours < 24,
            minutes < 60
        else { return nil }
        return (hours * 60 + minutes) * (isWest ? -1 : 1)
    }
}
