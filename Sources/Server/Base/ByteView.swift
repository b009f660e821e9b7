// Read access to the bytes of a body.
import Glibc

/// Bytes in memory or of a mapped file; each access is bounds-checked.
///
/// Valid only during the call that it was passed to.
package struct ByteView {
    private let bytes: UnsafeRawBufferPointer
    private let isMapped: Bool

    package init(_ bytes: UnsafeRawBufferPointer, isMapped: Bool) {
        self.bytes = bytes
        self.isMapped = isMapped
    }

    package var count: Int { bytes.count }

    /// All bytes, for readers that check the bounds themselves.
    package var all: UnsafeRawBufferPointer { bytes }

    package subscript(index: Int) -> UInt8 {
        // A buffer checks its bounds only in debug builds, and these bytes come from anybody.
        precondition(index >= 0 && index < bytes.count, "outside of the body")
        return bytes[index]
    }

    package subscript(range: Range<Int>) -> UnsafeRawBufferPointer {
        precondition(
            range.lowerBound >= 0 && range.upperBound <= bytes.count,
            "outside of the body"
        )
        return UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    /// Returns whether the range contains a line feed or carriage return.
    package func hasLineEnd(_ range: Range<Int>) -> Bool {
        guard let base = self[range].baseAddress else { return false }
        return [10, 13].contains { memchr(base, $0, range.count) != nil }
    }

    /// Returns the offset of the first line feed from `start` on; `count` if there is none.
    func lineFeed(from start: Int) -> Int {
        let rest = self[start..<count]
        guard let base = rest.baseAddress, let found = memchr(base, 10, rest.count) else {
            return count
        }
        return start + (UnsafeRawPointer(found) - base)
    }

    /// Releases pages that were read; reading them again loads them from the file.
    package func release(_ range: Range<Int>) {
        let page = Int(getpagesize())
        let start = (range.lowerBound + page - 1) / page * page
        let end = range.upperBound / page * page
        guard isMapped, start < end, let base = bytes.baseAddress else { return }
        madvise(UnsafeMutableRawPointer(mutating: base + start), end - start, MADV_DONTNEED)
    }
}
