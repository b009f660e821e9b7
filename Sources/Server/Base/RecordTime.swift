// A record's timestamp, as far as file names need it.
package import Host

/// An RFC 3339 timestamp (section 5.6), with a valid calendar date, because it names a folder.
package struct RecordTime: Sendable {
    /// `yyyy-mm-dd`, as written.
    package let date: String
    /// Only the digits, `T` and `Z`, for a file name.
    package let compact: String
    /// Milliseconds since 1970; nil for a leap second that is not the last one of a day.
    private let milliseconds: Int64?

    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count) else { return nil }
        milliseconds = WallTime(rfc3339: text)?.milliseconds
        if milliseconds == nil {
            let isLeapSecond = bytes[17..<19].elementsEqual("60".utf8)
            let before = bytes[..<17] + Array("59".utf8) + bytes[19...]
            guard isLeapSecond, WallTime(rfc3339: String(decoding: before, as: UTF8.self)) != nil
            else { return nil }
        }
        date = String(decoding: bytes[..<10], as: UTF8.self)
        let kept = bytes.filter { $0.isDigit || "TtZz".utf8.contains($0) }
        compact = String(decoding: kept, as: UTF8.self)
    }

    /// Returns whether it is over a day after the server's clock, more than a time zone or slow
    /// clock explains.
    package func isAhead(of now: WallTime) -> Bool {
        milliseconds.map { $0 > now.milliseconds + Day.milliseconds } ?? false
    }
}
