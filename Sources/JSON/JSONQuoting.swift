// Quotes and escapes strings for JSON.

extension [UInt8] {
    /// Appends a JSON string: in quotes, with the escapes that RFC 8259, section 7 requires.
    package mutating func appendQuoted(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            append(UInt8(ascii: "\""))
            if Self.isPlain(utf8) { append(contentsOf: utf8) } else { appendEscaped(utf8) }
            append(UInt8(ascii: "\""))
        }
    }

    /// Returns true if no byte needs an escape; checks eight at a time, as uploads quote every
    /// value.
    private static func isPlain(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
        let bytes = UnsafeRawBufferPointer(utf8)
        guard bytes.count >= 8 else { return bytes.allSatisfy(Self.isPlain) }
        var at = 0
        while at + 8 <= bytes.count {
            guard isPlain(bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)) else {
                return false
            }
            at += 8
        }
        // The last eight bytes, some of them checked twice.
        return isPlain(bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Checks eight bytes: one below 0x20, or one that XOR made zero, borrows from its highest bit.
    private static func isPlain(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
        let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
        let below = (word &- ones &* 0x20) & ~word
        return (below | (quote &- ones) & ~quote | (backslash &- ones) & ~backslash)
            & (ones &* 0x80) == 0
    }

    private mutating func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>) {
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
            case 0..<0x20:
                let hex = String(byte, radix: 16)
                append(contentsOf: "\\u00\(hex.utf8.count == 1 ? "0" : "")\(hex)".utf8)
            default:
                append(byte)
            }
        }
    }
}
