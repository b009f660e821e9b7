// Reads strings of JSON texts in place.

enum JSONString {
    /// Longer strings are not read: all members that the server itself uses are short.
    private static let readable = 1024

    /// Returns a checked string without its escapes: `"\u0061"` is `a`; nil for a long one.
    static func read(_ bytes: ByteView, _ range: Range<Int>) -> String? {
        guard range.count <= readable else { return nil }
        let inner = bytes[range.lowerBound + 1..<range.upperBound - 1]
        guard inner.contains(UInt8(ascii: "\\")) else {
            return String(decoding: inner, as: UTF8.self)
        }
        var text: [UInt8] = []
        unescape(bytes, range) { text.append($0) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Passes the bytes between the quotes on, without escapes.
    static func unescape(
        _ bytes: ByteView,
        _ range: Range<Int>,
        _ take: (UInt8) throws -> Void
    ) rethrows {
        var index = range.lowerBound + 1
        while index < range.upperBound - 1 {
            guard bytes[index] == UInt8(ascii: "\\") else {
                try take(bytes[index])
                index += 1
                continue
            }
            let scalar = unescaped(bytes, at: &index)
            for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { try take(byte) }
        }
    }

    /// Returns the character of a checked escape, and moves `index` behind it.
    private static func unescaped(_ bytes: ByteView, at index: inout Int) -> Unicode.Scalar {
        let letter = bytes[index + 1]
        index += 2
        switch letter {
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: return Unicode.Scalar(letter)
        }
        let first = unit(bytes, at: index) ?? 0
        index += 4
        guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) ?? "\u{FFFD}" }
        let second = unit(bytes, at: index + 2) ?? 0xDC00
        index += 6
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? "\u{FFFD}"
    }

    /// Returns the end of the escape at `start`; throws for half a surrogate pair.
    static func escapeEnd(_ bytes: ByteView, at start: Int) throws -> Int {
        guard start + 1 < bytes.count else { throw BodyFault(place: start) }
        switch bytes[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return start + 2
        case UInt8(ascii: "u"): break
        default: throw BodyFault(place: start)
        }
        guard let first = unit(bytes, at: start + 2), !(0xDC00..<0xE000).contains(first) else {
            throw BodyFault(place: start)
        }
        guard (0xD800..<0xDC00).contains(first) else { return start + 6 }
        guard start + 7 < bytes.count, bytes[start + 6] == UInt8(ascii: "\\"),
            bytes[start + 7] == UInt8(ascii: "u"), let second = unit(bytes, at: start + 8),
            (0xDC00..<0xE000).contains(second)
        else { throw BodyFault(place: start) }
        return start + 12
    }

    /// Parses four hexadecimal digits.
    private static func unit(_ bytes: ByteView, at start: Int) -> UInt32? {
        guard start + 4 <= bytes.count else { return nil }
        var unit: UInt32 = 0
        for index in start..<start + 4 {
            let byte = bytes[index]
            switch byte {
            case 0x30...0x39: unit = unit << 4 | UInt32(byte - 0x30)
            case 0x41...0x46, 0x61...0x66: unit = unit << 4 | UInt32((byte | 0x20) - 0x61 + 10)
            default: return nil
            }
        }
        return unit
    }

    /// Returns the end of a multi-byte character (RFC 3629, section 4); rejects overlong forms and
    /// surrogates.
    static func scalarEnd(_ bytes: ByteView, at start: Int) throws -> Int {
        let (count, second): (Int, ClosedRange<UInt8>) =
            switch bytes[start] {
            case 0xC2...0xDF: (2, 0x80...0xBF)
            case 0xE0: (3, 0xA0...0xBF)
            case 0xED: (3, 0x80...0x9F)
            case 0xE1...0xEF: (3, 0x80...0xBF)
            case 0xF0: (4, 0x90...0xBF)
            case 0xF1...0xF3: (4, 0x80...0xBF)
            case 0xF4: (4, 0x80...0x8F)
            default: throw BodyFault(place: start)
            }
        guard start + count <= bytes.count, second.contains(bytes[start + 1]) else {
            throw BodyFault(place: start)
        }
        for index in start + 2..<start + count where bytes[index] & 0xC0 != 0x80 {
            throw BodyFault(place: start)
        }
        return start + count
    }
}
