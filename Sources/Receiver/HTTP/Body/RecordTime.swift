// A record's timestamp, as far as file names need it.
import Host

/// An RFC 3339 timestamp (section 5.6), with a valid calendar date, because it names a folder.
struct RecordTime: Sendable {
    /// `yyyy-mm-dd`, as written.
    let date: String
    /// Only the digits, `T` and `Z`, for a file name.
    let compact: String
    /// Milliseconds since 1970; nil if `WallTime` cannot express it.
    private let milliseconds: Int64?

    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count), Self.isDate(bytes), Self.isTime(bytes),
            Self.isZone(Self.withoutFraction(bytes[19...]))
        else { return nil }
        date = String(decoding: bytes[..<10], as: UTF8.self)
        milliseconds = WallTime(rfc3339: text)?.milliseconds
        compact = String(
            decoding: bytes.filter { Self.isDigit($0) || $0 | 0x20 == 0x74 || $0 | 0x20 == 0x7A },
            as: UTF8.self
        )
    }

    /// Returns whether it is over a day after the server's clock, more than a time zone or slow
    /// clock explains.
    func isAhead(of now: WallTime) -> Bool {
        milliseconds.map { $0 > now.milliseconds + Day.milliseconds } ?? false
    }

    private static func isDate(_ bytes: [UInt8]) -> Bool {
        guard let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10]), bytes[4] == 0x2D, bytes[7] == 0x2D
        else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...12).contains(month) && (1...days[month - 1]).contains(day)
    }

    private static func isTime(_ bytes: [UInt8]) -> Bool {
        guard let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]),
            let second = number(bytes[17..<19]), bytes[10] | 0x20 == 0x74, bytes[13] == 0x3A,
            bytes[16] == 0x3A
        else { return false }
        // A leap second is second 60.
        return hour < 24 && minute < 60 && second < 61
    }

    /// Drops a fraction after the seconds; keeps a `.` without digits.
    private static func withoutFraction(_ rest: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let digits = rest.dropFirst().prefix(while: isDigit).count
        return rest.first == 0x2E && digits > 0 ? rest.dropFirst(1 + digits) : rest
    }

    private static func isZone(_ zone: ArraySlice<UInt8>) -> Bool {
        guard let first = zone.first else { return false }
        guard zone.count > 1 else { return first | 0x20 == 0x7A }
        let start = zone.startIndex
        guard zone.count == 6, [0x2B, 0x2D].contains(first), zone[start + 3] == 0x3A,
            let hours = number(zone[(start + 1)..<(start + 3)]),
            let minutes = number(zone[(start + 4)..<(start + 6)])
        else { return false }
        return hours < 24 && minutes < 60
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.allSatisfy(isDigit) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}
