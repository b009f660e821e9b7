// JSON from outside: looked at before FoundationEssentials gets it.
internal import FoundationEssentials

/// Reads JSON that anybody may have written.
///
/// In Swift 6.0, JSONDecoder ends the program (`try!`) over a control character or a broken escape in the name of
/// a member, so strings are checked first.
package enum JSONInput {
    /// What is no sound JSON.
    package struct Malformed: Error {}

    /// Throws `Malformed`, or JSONDecoder's DecodingError.
    ///
    /// `snakeCase`: names are `in_snake_case` there.
    package static func decode<Value: Decodable>(
        _ type: Value.Type = Value.self,
        from bytes: [UInt8],
        snakeCase: Bool = false
    ) throws -> Value {
        guard stringsAreSound(bytes) else { throw Malformed() }
        let decoder = JSONDecoder()
        if snakeCase { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        return try decoder.decode(type, from: Data(bytes))
    }

    /// Whether all is UTF-8, and each string as RFC 8259 (section 7) has it.
    static func stringsAreSound(_ bytes: [UInt8]) -> Bool {
        // Repairing changes what is no UTF-8.
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

    /// The place of the quote that ends a string; nil where it has none, or is not sound.
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

    /// The length of the escape that begins here; nil for none that there is.
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

    /// Four hexadecimal digits.
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
