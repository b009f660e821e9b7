// The bytes of a body while they are looked at.
import Glibc

/// Bytes in memory, or of a mapped file; each access is checked.
///
/// Valid in the call that it was given to.
package struct ByteView {
    private let bytes: UnsafeRawBufferPointer
    private let isMapped: Bool

    init(_ bytes: UnsafeRawBufferPointer, isMapped: Bool) {
        self.bytes = bytes
        self.isMapped = isMapped
    }

    package var count: Int { bytes.count }

    subscript(index: Int) -> UInt8 {
        // A buffer checks its own bounds in debug builds alone, and these bytes are anybody's.
        precondition(index >= 0 && index < bytes.count, "outside of the body")
        return bytes[index]
    }

    subscript(range: Range<Int>) -> UnsafeRawBufferPointer {
        precondition(
            range.lowerBound >= 0 && range.upperBound <= bytes.count,
            "outside of the body"
        )
        return UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    /// Where the first byte from `start` on, before `end`, is that means something in a JSON string: a quote, a
    /// backslash, a control character, or a part of a character of several bytes; `end` where there is none.
    func endOfPlainText(from start: Int, to end: Int) -> Int {
        var index = start
        let eighths = self[start..<end]
        while index + 8 <= end {
            let word = eighths.loadUnaligned(fromByteOffset: index - start, as: UInt64.self)
            if Self.hasSpecialByte(word) { break }
            index += 8
        }
        while index < end, !Self.hasSpecialByte(UInt64(self[index]) | 0x6161_6161_6161_6100) {
            index += 1
        }
        return index
    }

    /// Eight bytes at once: a byte less than n borrows into its highest bit when n is taken off.
    private static func hasSpecialByte(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        func isBelow(_ bytes: UInt64, _ limit: UInt64) -> UInt64 {
            (bytes &- ones &* limit) & ~bytes
        }
        let quote = isBelow(word ^ ones &* 0x22, 1)
        let backslash = isBelow(word ^ ones &* 0x5C, 1)
        return (word | isBelow(word, 0x20) | quote | backslash) & (ones &* 0x80) != 0
    }

    /// Whether a line feed or carriage return is among them.
    func hasLineEnd(_ range: Range<Int>) -> Bool {
        guard let base = self[range].baseAddress else { return false }
        return [10, 13].contains { memchr(base, $0, range.count) != nil }
    }

    /// Where the first line feed from `start` on is; `count` where there is none.
    func lineFeed(from start: Int) -> Int {
        let rest = self[start..<count]
        guard let base = rest.baseAddress, let found = memchr(base, 10, rest.count) else {
            return count
        }
        return start + (UnsafeRawPointer(found) - base)
    }

    /// What was looked at need not stay in memory; looking again reads the file.
    func release(_ range: Range<Int>) {
        let page = Int(getpagesize())
        let start = (range.lowerBound + page - 1) / page * page
        let end = range.upperBound / page * page
        guard isMapped, start < end, let base = bytes.baseAddress else { return }
        madvise(UnsafeMutableRawPointer(mutating: base + start), end - start, MADV_DONTNEED)
    }
}
