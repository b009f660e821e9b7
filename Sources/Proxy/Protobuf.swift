// Protocol Buffers (protobuf.dev, "Encoding"), as far as ESPHome's messages need them.

/// Writes the fields of one message; a field with its default value is left out, as proto3 does.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ field: UInt64, _ number: UInt64) {
        guard number != 0 else { return }
        append(field << 3)
        append(number)
    }

    /// Adds a `sint32`: zigzag, so that small negative numbers are short.
    mutating func add(_ field: UInt64, signed number: Int32) {
        add(field, UInt64(UInt32(bitPattern: number << 1 ^ number >> 31)))
    }

    mutating func add(_ field: UInt64, _ text: String) { add(field, Array(text.utf8)) }

    mutating func add(_ field: UInt64, _ content: [UInt8]) {
        if !content.isEmpty { add(field, message: content) }
    }

    /// Adds a message, also an empty one: as an element of a list it counts.
    mutating func add(_ field: UInt64, message: [UInt8]) {
        append(field << 3 | 2)
        append(UInt64(message.count))
        bytes += message
    }

    private mutating func append(_ varint: UInt64) {
        var rest = varint
        while rest > 127 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 128)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

/// Reads the fields of a message from outside.
struct ProtobufReader {
    enum Value: Equatable {
        case number(UInt64)
        case bytes(ArraySlice<UInt8>)
    }

    /// The bytes are not a message.
    struct MalformedError: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// Returns the next field; nil at the end.
    mutating func next() throws(MalformedError) -> (field: UInt64, value: Value)? {
        if rest.isEmpty { return nil }
        let tag = try varint()
        guard tag >> 3 > 0 else { throw MalformedError() }
        switch tag & 7 {
        case 0: return (tag >> 3, .number(try varint()))
        case 1: return (tag >> 3, .bytes(try consume(8)))
        case 2: return (tag >> 3, .bytes(try consume(varint())))
        case 5: return (tag >> 3, .bytes(try consume(4)))
        default: throw MalformedError()
        }
    }

    private mutating func consume(_ count: UInt64) throws(MalformedError) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw MalformedError() }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    /// At most ten bytes; bits beyond 64 are dropped, as protobuf does.
    private mutating func varint() throws(MalformedError) -> UInt64 {
        var value: UInt64 = 0
        for place in 0..<10 {
            guard let byte = rest.popFirst() else { throw MalformedError() }
            value |= UInt64(byte & 127) << (7 * UInt64(place))
            if byte < 128 { return value }
        }
        throw MalformedError()
    }
}
