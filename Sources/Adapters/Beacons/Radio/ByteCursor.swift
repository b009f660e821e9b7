// Reads integers from hostile bytes without ever trapping.

/// Reads bytes from front to back; returns nil past the end.
struct ByteCursor {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func signed() -> Int8? { rest.popFirst().map { Int8(bitPattern: $0) } }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func bigEndian(_ count: Int) -> UInt64? {
        bytes(count).map { $0.reduce(0) { $0 << 8 | UInt64($1) } }
    }

    mutating func littleEndian(_ count: Int) -> UInt64? {
        bytes(count).map { $0.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    }

    mutating func signedBigEndian16() -> Int16? {
        bigEndian(2).map { Int16(bitPattern: UInt16(truncatingIfNeeded: $0)) }
    }
}
