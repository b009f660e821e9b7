// Decodes base64 (RFC 4648, section 4) in a JSON string, block by block.

package struct Base64Text {
    private static let block = 48 << 10

    private let bytes: ByteView
    private let string: Range<Int>
    private var output: [UInt8] = []
    private var group: UInt32 = 0
    private var digits = 0
    private var padding = 0

    package init(_ bytes: ByteView, _ string: Range<Int>) {
        self.bytes = bytes
        self.string = string
    }

    /// Passes the decoded bytes on in blocks; throws `RecordError` for invalid base64.
    package func decode(_ receive: ([UInt8]) throws -> Void) throws {
        var text = self
        text.output.reserveCapacity(Self.block + 3)
        try JSONString.unescape(bytes, string) { piece in
            for character in piece {
                try text.add(character)
                guard text.output.count >= Self.block else { continue }
                try receive(text.output)
                text.output.removeAll(keepingCapacity: true)
            }
        }
        guard (text.digits + text.padding) % 4 == 0 else { throw Self.fault }
        bytes.release(string)
        if !text.output.isEmpty { try receive(text.output) }
    }

    private static var fault: RecordError { .init(reason: "audio_data is not base64") }

    private mutating func add(_ character: UInt8) throws {
        if character == UInt8(ascii: "=") {
            padding += 1
            guard padding <= 2, digits % 4 >= 2 else { throw Self.fault }
            // A padded group holds one or two bytes instead of three.
            if padding == 1, digits % 4 == 3 {
                output += [UInt8(group >> 10 & 0xFF), UInt8(group >> 2 & 0xFF)]
            }
            if padding == 1, digits % 4 == 2 { output.append(UInt8(group >> 4 & 0xFF)) }
            return
        }
        guard padding == 0, let digit = Self.digit(character) else { throw Self.fault }
        group = group << 6 | digit
        digits += 1
        if digits % 4 == 0 {
            output.append(UInt8(group >> 16 & 0xFF))
            output.append(UInt8(group >> 8 & 0xFF))
            output.append(UInt8(group & 0xFF))
        }
    }

    private static func digit(_ character: UInt8) -> UInt32? {
        switch character {
        case 0x41...0x5A: UInt32(character - 0x41)
        case 0x61...0x7A: UInt32(character - 0x61 + 26)
        case 0x30...0x39: UInt32(character - 0x30 + 52)
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
