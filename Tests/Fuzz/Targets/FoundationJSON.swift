// Foundation's JSON parser, for comparison with the gateway's.
import Foundation

/// Parses JSON with Foundation.
///
/// In Swift 6.0, JSONDecoder crashes (`try!`) on a control character or an invalid escape in a
/// member's name, so strings are checked first.
enum FoundationJSON {
    /// Returns whether all of the bytes are JSON.
    ///
    /// JSONDecoder does not look at the numbers of a member that is repeated.
    static func isValid(_ bytes: [UInt8]) -> Bool {
        (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
    }

    static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
        guard stringsAreAudio(bytes) else { return nil }
        return try? JSONDecoder().decode(type, from: Data(bytes))
    }

    /// Returns whether all bytes are UTF-8 and each string is valid (RFC 8259, section 7).
    private static func stringsAreAudio(_ bytes: [UInt8]) -> Bool {
        // Decoding repairs, and thereby changes, invalid UTF-8.
        guard String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) else { return false }
        var at = 0
        while at < bytes.count {
            defer { at += 1 }
            guard bytes[at] == UInt8(ascii: "\"") else { continue }
            guard let end = endOfString(bytes, from: at + 1) else { return false }
            at = end
        }
        return true
    }

    /// Returns the index of the quote that ends a string; nil if there is none or the string is
    /// invalid.
    private static func endOfString(_ bytes: [UInt8], from start: Int) -> Int? {
        var at = start
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "\""): return at
            case 0..<0x20: return nil
            case UInt8(ascii: "\\"):
                guard let length = escape(bytes[at...]) else { return nil }
                at += length
            default: at += 1
            }
        }
        return nil
    }

    /// Returns the length of the escape that begins here; nil if it is invalid.
    private static func escape(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let kind = bytes.dropFirst().first else { return nil }
        guard kind == UInt8(ascii: "u") else {
            return "\"\\/bfnrt".utf8.contains(kind) ? 2 : nil
        }
        guard let first = unit(bytes.dropFirst(2)) else { return nil }
        switch first {
        case 0xDC00...0xDFFF: return nil
        case 0xD800...0xDBFF:
            // The other half of the pair.
            let rest = bytes.dropFirst(6)
            guard rest.starts(with: "\\u".utf8), let low = unit(rest.dropFirst(2)),
                (0xDC00...0xDFFF).contains(low)
            else { return nil }
            return 12
        default: return 6
        }
    }

    /// Parses four hexadecimal digits.
    private static func unit(_ bytes: ArraySlice<UInt8>) -> Int? {
        let digits = bytes.prefix(4)
        guard digits.count == 4 else { return nil }
        return digits.reduce(0 as Int?) { sum, digit in
            guard let sum, let value = Character(UnicodeScalar(digit)).hexDigitValue else {
                return nil
            }
            return sum << 4 | value
        }
    }
}
