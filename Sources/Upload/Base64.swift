// Base64 (RFC 4648, section 4) straight into the JSON being built.

/// Encodes pieces of any length into one base64 text.
struct Base64Encoder {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    /// At most two bytes that do not fill a group of three yet.
    private var rest: [UInt8] = []

    mutating func encode(_ bytes: [UInt8], into text: inout [UInt8]) {
        let input = rest + bytes
        let whole = input.count / 3 * 3
        text.reserveCapacity(text.count + input.count / 3 * 4 + 4)
        Self.alphabet.withUnsafeBufferPointer { alphabet in
            for at in stride(from: 0, to: whole, by: 3) {
                let group = Int(input[at]) << 16 | Int(input[at + 1]) << 8 | Int(input[at + 2])
                text.append(alphabet[group >> 18])
                text.append(alphabet[group >> 12 & 63])
                text.append(alphabet[group >> 6 & 63])
                text.append(alphabet[group & 63])
            }
        }
        rest = Array(input[whole...])
    }

    mutating func finish(into text: inout [UInt8]) {
        guard !rest.isEmpty else { return }
        let group = Int(rest[0]) << 16 | (rest.count > 1 ? Int(rest[1]) << 8 : 0)
        text.append(Self.alphabet[group >> 18])
        text.append(Self.alphabet[group >> 12 & 63])
        text.append(rest.count > 1 ? Self.alphabet[group >> 6 & 63] : UInt8(ascii: "="))
        text.append(UInt8(ascii: "="))
        rest = []
    }
}
