// A JSON writer: ten times faster than an encoder, and the same bytes each time.
package import Host

/// Builds JSON text byte by byte.
///
/// Writes fields in the order of the calls.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() {}

    /// Discards the text and keeps the memory.
    package mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    package mutating func object(_ content: (inout Self) throws -> Void) rethrows {
        open("{")
        try content(&self)
        close("}")
    }

    package mutating func array(_ content: (inout Self) throws -> Void) rethrows {
        open("[")
        try content(&self)
        close("]")
    }

    private mutating func open(_ bracket: Unicode.Scalar) {
        separate()
        bytes.append(UInt8(ascii: bracket))
        needsComma = false
    }

    private mutating func close(_ bracket: Unicode.Scalar) {
        bytes.append(UInt8(ascii: bracket))
        needsComma = true
    }

    package mutating func key(_ key: String) {
        separate()
        bytes.appendQuoted(key)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// Writes a name that is already JSON.
    package mutating func key(raw name: UnsafeRawBufferPointer) {
        raw(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    package mutating func field(_ key: String, _ text: String) {
        self.key(key)
        value(text)
    }

    package mutating func field(_ key: String, _ integer: Int64) {
        self.key(key)
        decimal(integer, 0)
        needsComma = true
    }

    package mutating func field(_ key: String, _ flag: Bool) {
        self.key(key)
        raw(flag ? "true" : "false")
    }

    /// Writes a number; NaN and infinity become null.
    package mutating func field(_ key: String, _ number: Double) {
        self.key(key)
        raw(number.isFinite ? "\(number)" : "null")
    }

    package mutating func field(_ key: String, _ time: WallTime) {
        self.key(key)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 26) { text in
            text.initialize(repeating: UInt8(ascii: "\""))
            time.write(rfc3339To: UnsafeMutableBufferPointer(rebasing: text[1..<25]))
            bytes.append(contentsOf: text)
        }
        needsComma = true
    }

    /// Writes `scaled / 10^decimals` exactly: `-0.05`.
    package mutating func field(_ key: String, scaled: Int64, decimals: Int) {
        self.key(key)
        decimal(scaled, decimals)
        needsComma = true
    }

    package mutating func value(_ text: String) {
        separate()
        bytes.appendQuoted(text)
        needsComma = true
    }

    package mutating func value(_ integer: Int64) { value(scaled: integer, decimals: 0) }

    /// Writes `scaled / 10^decimals` exactly.
    package mutating func value(scaled: Int64, decimals: Int) {
        separate()
        decimal(scaled, decimals)
        needsComma = true
    }

    /// Writes text that is already JSON.
    package mutating func raw(_ json: String) {
        separate()
        bytes.append(contentsOf: json.utf8)
        needsComma = true
    }

    /// Writes bytes that are already JSON.
    package mutating func raw(_ json: [UInt8]) {
        separate()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    /// Writes bytes that are already JSON, of a text that somebody else holds.
    package mutating func raw(_ json: UnsafeRawBufferPointer) {
        separate()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    /// Lets `body` append bytes that are part of valid JSON.
    package mutating func extend(_ body: (inout [UInt8]) throws -> Void) rethrows {
        try body(&bytes)
    }

    /// Appends bytes unchanged: inside a quoted value, or at the end of a line.
    package mutating func append(_ raw: some Sequence<UInt8>) {
        bytes.append(contentsOf: raw)
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    /// Writes digits backwards into a buffer that fits any 64-bit number with its sign and point.
    private mutating func decimal(_ scaled: Int64, _ decimals: Int) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 24 + decimals) { text in
            text.initialize(repeating: UInt8(ascii: "0"))
            var at = text.count
            var rest = scaled.magnitude
            var digits = 0
            while rest > 0 || digits <= decimals {
                if digits == decimals, decimals > 0 {
                    at -= 1
                    text[at] = UInt8(ascii: ".")
                }
                at -= 1
                text[at] = 48 + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
                digits += 1
            }
            if scaled < 0 {
                at -= 1
                text[at] = UInt8(ascii: "-")
            }
            assert(at >= 0, "a number fits into its buffer")
            bytes.append(contentsOf: text[at...])
        }
    }
}

extension [UInt8] {
    /// Appends a JSON string: in quotes, with the escapes that RFC 8259, section 7 requires.
    fileprivate mutating func appendQuoted(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            let raw = UnsafeRawBufferPointer(utf8)
            let isPlain = raw.endOfPlainText(from: 0, to: raw.count, isUTF8: true) == raw.count
            append(UInt8(ascii: "\""))
            if isPlain { append(contentsOf: utf8) } else { utf8.forEach { appendEscaped($0) } }
            append(UInt8(ascii: "\""))
        }
    }

    private mutating func appendEscaped(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(contentsOf: [UInt8(ascii: "\\"), byte])
        case 0..<0x20: append(contentsOf: "\\u00\(hex([byte]))".utf8)
        default: append(byte)
        }
    }
}
