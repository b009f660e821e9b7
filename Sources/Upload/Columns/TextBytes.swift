// Bytes of a text that somebody else holds, compared and searched as a whole.
import Glibc

/// A view of bytes, valid as long as the closure that was given them.
///
/// An ArraySlice would be hashed and compared byte by byte, which took half of a batch's time.
struct TextBytes: Hashable {
    let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var count: Int { bytes.count }

    subscript(place: Int) -> UInt8 { bytes[place] }

    subscript(range: Range<Int>) -> Self { Self(UnsafeRawBufferPointer(rebasing: bytes[range])) }

    func prefix(_ count: Int) -> Self { self[0..<min(count, self.count)] }

    /// Returns the place of a byte, from a place on.
    func first(_ byte: UInt8, from place: Int = 0) -> Int? {
        guard place < count, let base = bytes.baseAddress,
            let found = memchr(base + place, Int32(byte), count - place)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    static func == (left: Self, right: Self) -> Bool {
        guard left.count == right.count else { return false }
        guard let one = left.bytes.baseAddress, let other = right.bytes.baseAddress else {
            return true
        }
        return memcmp(one, other, left.count) == 0
    }

    func hash(into hasher: inout Hasher) { hasher.combine(bytes: bytes) }
}
