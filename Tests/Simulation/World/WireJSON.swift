// Parses the JSON that the gateway sends.

/// A JSON value; the members of an object keep their order.
package indirect enum WireJSON: Equatable {
    case null
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([WireJSON])
    case object([(key: String, value: WireJSON)])

    package init?(_ bytes: [UInt8]) {
        var parser = Parser(bytes: bytes)
        guard let value = parser.value(), parser.isAtEnd else { return nil }
        self = value
    }

    package subscript(key: String) -> WireJSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    package var text: String? {
        guard case .text(let text) = self else { return nil }
        return text
    }

    package var number: Double? {
        guard case .number(let number) = self else { return nil }
        return number
    }

    package var integer: Int? { number.map { Int($0.rounded()) } }

    package var list: [WireJSON]? {
        guard case .list(let list) = self else { return nil }
        return list
    }

    /// A hash that is the same in each process (FNV-1a).
    package var fingerprint: UInt64 {
        var hash = Fingerprint()
        mix(into: &hash)
        return hash.value
    }

    private func mix(into hash: inout Fingerprint) {
        switch self {
        case .null: hash.add([0])
        case .flag(let flag): hash.add([1, flag ? 1 : 0])
        case .number(let number): hash.add("n\(number)".utf8)
        case .text(let text): hash.add("\"\(text)\"".utf8)
        case .list(let list):
            for value in list { value.mix(into: &hash) }
            hash.add([2])
        case .object(let members):
            for (key, value) in members {
                hash.add(key.utf8)
                value.mix(into: &hash)
            }
            hash.add([3])
        }
    }

    package static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.flag(let left), .flag(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.text(let left), .text(let right)): left == right
        case (.list(let left), .list(let right)): left == right
        case (.object(let left), .object(let right)):
            left.elementsEqual(right) { $0.key == $1.key && $0.value == $1.value }
        default: false
        }
    }
}

/// FNV-1a in 64 bits.
struct Fingerprint {
    private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    static func of(_ bytes: [UInt8]) -> UInt64 {
        var print = Fingerprint()
        print.add(bytes)
        return print.value
    }
}

private struct Parser {
    let bytes: [UInt8]
    var at = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { at == bytes.count }

    mutating func value() -> WireJSON? {
        guard at < bytes.count else { return nil }
        switch bytes[at] {
        case UInt8(ascii: "{"): return object()
        case UInt8(ascii: "["): return list()
        case UInt8(ascii: "\""): return string().map { .text($0) }
        case UInt8(ascii: "t"): return word("true", .flag(true))
        case UInt8(ascii: "f"): return word("false", .flag(false))
        case UInt8(ascii: "n"): return word("null", .null)
        default: return number()
        }
    }

    private mutating func word(_ word: String, _ value: WireJSON) -> WireJSON? {
        guard bytes[at...].starts(with: word.utf8) else { return nil }
        at += word.utf8.count
        return value
    }

    private mutating func number() -> WireJSON? {
        let start = at
        while at < bytes.count, "+-.eE0123456789".utf8.contains(bytes[at]) { at += 1 }
        return Double(String(decoding: bytes[start..<at], as: UTF8.self)).map { .number($0) }
    }

    /// Escapes are kept as they are: compared values have the same ones.
    private mutating func string() -> String? {
        let start = at + 1
        at = start
        while at < bytes.count, bytes[at] != UInt8(ascii: "\"") {
            at += bytes[at] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard at < bytes.count else { return nil }
        defer { at += 1 }
        return String(decoding: bytes[start..<at], as: UTF8.self)
    }

    private mutating func consume(_ byte: Character) -> Bool {
        guard at < bytes.count, bytes[at] == byte.asciiValue else { return false }
        at += 1
        return true
    }

    private mutating func list() -> WireJSON? {
        at += 1
        var values: [WireJSON] = []
        if consume("]") { return .list([]) }
        while let value = value() {
            values.append(value)
            if consume("]") { return .list(values) }
            guard consume(",") else { return nil }
        }
        return nil
    }

    private mutating func object() -> WireJSON? {
        at += 1
        var members: [(key: String, value: WireJSON)] = []
        if consume("}") { return .object([]) }
        while at < bytes.count, bytes[at] == UInt8(ascii: "\""), let key = string() {
            guard consume(":"), let value = value() else { return nil }
            members.append((key, value))
            if consume("}") { return .object(members) }
            guard consume(",") else { return nil }
        }
        return nil
    }
}
