// Base64 (RFC 4648, section 4): encodes directly into the JSON being built; decodes short texts.
import Host
import CCrypto

/// Encodes pieces of any length into one base64 text.
package struct Base64Encoder {
    /// At most two bytes, which do not fill a group of three yet.
    private var rest: [UInt8] = []

    package init() {}

    package mutating func encode(_ bytes: [UInt8], into text: inout [UInt8]) {
        let input = rest.isEmpty ? bytes : rest + bytes
        let whole = input.count / 3 * 3
        Self.append(input[..<whole], to: &text)
        rest = Array(input[whole...])
    }

    package mutating func finish(into text: inout [UInt8]) {
        Self.append(rest[...], to: &text)
        rest = []
    }

    /// Appends the text of these bytes, padded if they do not fill the last group of three.
    private static func append(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
        let start = text.count
        // libcrypto ends the text with a zero.
        text += repeatElement(0, count: (bytes.count + 2) / 3 * 4 + 1)
        bytes.withUnsafeBufferPointer { bytes in
            text.withUnsafeMutableBufferPointer { text in
                let end = text.baseAddress.map { $0 + start }
                let count = EVP_EncodeBlock(end, bytes.baseAddress, Int32(bytes.count))
                mustHold(
                    start + Int(count) + 1 == text.count,
                    "base64 has the length made for it"
                )
            }
        }
        text.removeLast()
    }
}

/// Decodes whole groups of four; nil if they are not base64.
///
/// The padding gives zero bytes at the end.
package func base64Decoded(_ text: [UInt8]) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3)
    return EVP_DecodeBlock(&bytes, text, Int32(text.count)) == bytes.count ? bytes : nil
}
