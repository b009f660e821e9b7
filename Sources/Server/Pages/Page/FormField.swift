// Form fields as browsers send them (application/x-www-form-urlencoded, WHATWG URL, section 5).
import Host
import ServerBase

enum FormField {
    /// Returns the first value of a name; nil if there is none.
    static func read(_ name: String, _ body: ByteView) -> String? {
        for pair in body[0..<body.count].split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(
                separator: UInt8(ascii: "="),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard parts.count == 2, text(parts[0]) == name else { continue }
            return text(parts[1])
        }
        return nil
    }

    /// Returns a value as it is written in a form or a query.
    static func written(_ value: String) -> String {
        let plain = Set("-._~".utf8)
        var text = ""
        for byte in value.utf8 {
            let scalar = Unicode.Scalar(byte)
            let isPlain =
                plain.contains(byte) || scalar.isASCII && scalar.properties.isAlphabetic
                || byte.isDigit
            let digits = String(byte, radix: 16, uppercase: true)
            text += isPlain ? String(scalar) : "%" + (byte < 16 ? "0" : "") + digits
        }
        return text
    }

    private static func text(_ written: some Collection<UInt8>) -> String {
        var bytes: [UInt8] = []
        var rest = Array(written)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2).compactMap {
                Character(Unicode.Scalar($0)).hexDigitValue
            }
            if byte == UInt8(ascii: "%"), digits.count == 2 {
                bytes.append(UInt8(digits[0] << 4 | digits[1]))
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? 32 : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
