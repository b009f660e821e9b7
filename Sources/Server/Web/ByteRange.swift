// The byte range that a request asks for (RFC 9110, section 14).
import Host

package enum ByteRange {
    /// Parses a `Range` field for a body of `count` bytes; nil: send all, or the form may be
    /// ignored.
    ///
    /// Empty if the range cannot be satisfied (416).
    package static func read(_ field: String?, count: Int) -> Range<Int>? {
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
            // A suffix range: the last so many bytes.
            guard let last = Int(ends[1]) else { return nil }
            return max(0, count - last)..<count
        }
        guard start < count else { return count..<count }
        let end = Int(ends[1]) ?? count - 1
        return end < start ? nil : start..<min(count, end + 1)
    }
}
