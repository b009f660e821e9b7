// Messages of D-Bus (D-Bus specification, "Message Protocol"), as far as Avahi needs them.

/// Marshals values in the byte order of this machine's processors, little-endian.
struct DBusWriter {
    private(set) var bytes: [UInt8] = []

    mutating func align(_ size: Int) { while bytes.count % size != 0 { bytes.append(0) } }

    mutating func add(byte: UInt8) { bytes.append(byte) }

    mutating func add<Number: FixedWidthInteger>(_ number: Number) {
        align(MemoryLayout<Number>.size)
        withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }

    mutating func add(_ text: String) {
        add(UInt32(text.utf8.count))
        bytes += text.utf8
        bytes.append(0)
    }

    mutating func add(signature: String) {
        bytes.append(UInt8(truncatingIfNeeded: signature.utf8.count))
        bytes += signature.utf8
        bytes.append(0)
    }

    /// Adds an array of arrays of bytes, `aay`.
    mutating func add(list: [String]) {
        var content = DBusWriter()
        for text in list {
            content.add(UInt32(text.utf8.count))
            content.bytes += text.utf8
        }
        add(UInt32(content.bytes.count))
        bytes += content.bytes
    }

    mutating func append(_ more: [UInt8]) { bytes += more }
}

/// Reads marshalled values from outside; each `next` is nil if the bytes do not hold it.
struct DBusReader {
    private let bytes: ArraySlice<UInt8>
    private var place = 0

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    mutating func align(_ size: Int) { place += (size - place % size) % size }

    mutating func byte() -> UInt8? { take(1)?.first }

    mutating func number() -> UInt32? {
        align(4)
        return take(4)?.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func text() -> String? {
        guard let length = number() else { return nil }
        return terminated(Int(length))
    }

    mutating func signature() -> String? {
        guard let length = byte() else { return nil }
        return terminated(Int(length))
    }

    private mutating func terminated(_ length: Int) -> String? {
        guard let content = take(length), take(1) != nil else { return nil }
        return String(decoding: content, as: UTF8.self)
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard place + count <= bytes.count else { return nil }
        defer { place += count }
        return bytes.dropFirst(place).prefix(count)
    }

    var isAtEnd: Bool { place >= bytes.count }
}

/// A received message.
struct DBusMessage {
    enum Kind: UInt8 { case call = 1, answer, error, signal }

    var kind: Kind
    var replyTo: UInt32?
    var path = ""
    var interface = ""
    var member = ""
    var errorName = ""
    /// The sender's name on the bus, which the bus itself writes.
    var sender = ""
    var body: ArraySlice<UInt8>

    /// The most bytes of a message; those of the bus and of Avahi have some hundred.
    static let limit = 64 << 10

    enum Piece {
        case message(DBusMessage, bytes: Int)
        /// More bytes are needed.
        case incomplete
        case malformed
    }

    /// Parses the message at the beginning of `input`.
    static func parse(_ input: ArraySlice<UInt8>) -> Piece {
        guard input.count >= 16 else { return .incomplete }
        var header = DBusReader(input.prefix(16))
        guard header.byte() == UInt8(ascii: "l"), let type = header.byte(), header.byte() != nil,
            header.byte() == 1, let length = header.number(), header.number() != nil,
            let fields = header.number(), length <= limit, fields <= limit
        else { return .malformed }
        let start = 16 + (Int(fields) + 7) / 8 * 8
        let end = start + Int(length)
        guard input.count >= end else { return .incomplete }
        let body = input.dropFirst(start).prefix(Int(length))
        // A type of a later version is ignored, says the specification.
        var message = DBusMessage(kind: Kind(rawValue: type) ?? .call, body: body)
        message.read(fields: input.dropFirst(16).prefix(Int(fields)))
        return .message(message, bytes: end)
    }

    /// Reads the header fields that are used; stops at one of an unknown type.
    private mutating func read(fields: ArraySlice<UInt8>) {
        var reader = DBusReader(fields)
        while !reader.isAtEnd {
            reader.align(8)
            guard let code = reader.byte(), let type = reader.signature() else { return }
            switch type {
            case "u":
                let number = reader.number()
                if code == 5 { replyTo = number }
            case "s", "o":
                guard let text = reader.text() else { return }
                switch code {
                case 1: path = text
                case 2: interface = text
                case 3: member = text
                case 4: errorName = text
                case 7: sender = text
                default: break
                }
            case "g": _ = reader.signature()
            default: return
            }
        }
    }

    /// Returns a call as bytes; `signature` describes `body`.
    static func call(
        _ serial: UInt32,
        _ destination: String,
        _ path: String,
        _ member: String,
        interface: String,
        signature: String = "",
        body: [UInt8] = []
    ) -> [UInt8] {
        var message = DBusWriter()
        message.add(byte: UInt8(ascii: "l"))
        message.add(byte: Kind.call.rawValue)
        // No automatic start of a service that somebody has switched off.
        message.add(byte: 2)
        message.add(byte: 1)
        message.add(UInt32(body.count))
        message.add(serial)
        var fields = DBusWriter()
        for (code, type, text) in [
            (1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", destination),
        ] as [(UInt8, String, String)] {
            fields.align(8)
            fields.add(byte: code)
            fields.add(signature: type)
            fields.add(text)
        }
        if !signature.isEmpty {
            fields.align(8)
            fields.add(byte: 8)
            fields.add(signature: "g")
            fields.add(signature: signature)
        }
        message.add(UInt32(fields.bytes.count))
        message.append(fields.bytes)
        message.align(8)
        message.append(body)
        return message.bytes
    }
}
