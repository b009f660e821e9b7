// Reads strings of JSON texts in place.
import JSON

package enum JSONString {
    /// Longer strings are not read: all members that the server itself uses are short.
    private static let readable = 1024

    /// Returns a checked string without its escapes: `"\u0061"` is `a`; nil for a long one.
    package static func read(_ bytes: ByteView, _ range: Range<Int>) -> String? {
        guard range.count <= readable else { return nil }
        let inner = bytes[range.lowerBound + 1..<range.upperBound - 1]
        guard inner.contains(UInt8(ascii: "\\")) else {
            return String(decoding: inner, as: UTF8.self)
        }
        var text: [UInt8] = []
        unescape(bytes, range) { text += $0 }
        return String(decoding: text, as: UTF8.self)
    }

    /// Passes a checked string on piece by piece, without its quotes and escapes.
    static func unescape(
        _ bytes: ByteView,
        _ range: Range<Int>,
        _ receive: (UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        var token = JSONStringToken()
        var at = range.lowerBound + 1
        _ = try token.pass(bytes.all, &at, to: range.upperBound, receive)
    }
}
