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

    /// What was looked at need not stay in memory; looking again reads the file.
    func release(_ range: Range<Int>) {
        let page = Int(getpagesize())
        let start = (range.lowerBound + page - 1) / page * page
        let end = range.upperBound / page * page
        guard isMapped, start < end, let base = bytes.baseAddress else { return }
        madvise(UnsafeMutableRawPointer(mutating: base + start), end - start, MADV_DONTNEED)
    }
}
