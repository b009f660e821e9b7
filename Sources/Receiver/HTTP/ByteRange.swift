// The part of a body that is asked for (RFC 9110, section 14).
import Host

enum ByteRange {
    /// The bytes that a `Range` field asks for, of so many; nil: all of them, or a form that may be ignored.
    ///
    /// Empty where none of them are there (416).
    static func read(_ field: String?, count: Int) -> Range<Int>? {
        guard let field, field.hasPrefix("bytes="), !field.contains(",") else { return nil }
        let ends = field.dropFirst(6).split(
            separator: "-",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        guard ends.count == 2,
            ends.allSatisfy({ $0.utf8.count < 18 && $0.utf8.allSatisfy(\.isDigit) })
        else { return nil }
        guard let start = Int(ends[0]) else {
            // The last so many.
            guard let last = Int(ends[1]) else { return nil }
            return max(0, count - last)..<count
        }
        guard start < count else { return count..<count }
        let end = Int(ends[1]) ?? count - 1
        return end < start ? nil : start..<min(count, end + 1)
    }
}
