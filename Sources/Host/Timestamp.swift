// RFC 3339 text of a wall time, written and read without a calendar library.

extension WallTime {
    /// RFC 3339 UTC with milliseconds: `2026-11-21T04:30:07.123Z`.
    package var rfc3339: String {
        String(unsafeUninitializedCapacity: 24) { buffer in
            write(rfc3339To: buffer)
            return 24
        }
    }

    /// The 24 bytes of `rfc3339`; years outside 0...9999 are clamped into it.
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

    /// Reads `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`; nil for anything else (RFC 3339, section 5.6).
    package init?(rfc3339 text: String) {
        var rest = Array(text.utf8)[...]
        func number(_ digits: Int, then separator: String) -> Int64? {
            guard rest.count >= digits + separator.utf8.count else { return nil }
            var value: Int64 = 0
            for byte in rest.prefix(digits) {
                guard (48...57).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - 48)
            }
            rest = rest.dropFirst(digits)
            guard rest.starts(with: separator.utf8) else { return nil }
            rest = rest.dropFirst(separator.utf8.count)
            return value
        }
        guard let year = number(4, then: "-"), let month = number(2, then: "-"),
            let day = number(2, then: "T"), let hour = number(2, then: ":"),
            let minute = number(2, then: ":"), let second = number(2, then: ""),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        var fraction: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            var unit: Int64 = 100
            guard let first = rest.first, (48...57).contains(first) else { return nil }
            while let byte = rest.first, (48...57).contains(byte) {
                fraction += Int64(byte - 48) * unit
                unit /= 10
                rest = rest.dropFirst()
            }
        }
        var offset: Int64 = 0
        if rest.elementsEqual("Z".utf8) || rest.elementsEqual("z".utf8) {
            offset = 0
        } else if let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
            rest = rest.dropFirst()
            guard let hours = number(2, then: ":"), let minutes = number(2, then: ""), rest.isEmpty
            else { return nil }
            offset = (hours * 60 + minutes) * (sign == UInt8(ascii: "+") ? 60_000 : -60_000)
        } else {
            return nil
        }
        let days = Self.days(fromCivil: year, month, day)
        let time = ((hour * 60 + minute) * 60 + second) * 1000 + fraction
        self.init(milliseconds: days * 86_400_000 + time - offset)
    }

    /// Days since 1970-01-01 to a proleptic Gregorian date (`civil_from_days` by Hinnant).
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
    fileprivate func floorDivided(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
