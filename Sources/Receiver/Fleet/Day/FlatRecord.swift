// A record or an event's detail as names and values, for people.
import Host

/// The members of a JSON object in order; nested objects are flattened one level: `detail.reason`.
struct FlatRecord {
    enum Value {
        case number(Double, text: String)
        case text(String)
        case flag(Bool)
        /// Null, an array, or a deeper object.
        case other(String)

        var isNumber: Bool {
            if case .number = self { true } else { false }
        }

        var words: String {
            switch self {
            case .number(_, let text), .text(let text), .other(let text): text
            case .flag(let flag): flag ? "yes" : "no"
            }
        }
    }

    private static let longest = 300
    private static let mostMembers = 200

    private(set) var members: [(name: String, value: Value)] = []

    /// Empty if the text is not an object.
    init(_ json: String) {
        Array(json.utf8).withUnsafeBytes { bytes in
            let view = ByteView(bytes, isMapped: false)
            var text = BodyJSON(view)
            try? text.object { text, name in
                try take(&text, JSONString.read(view, name) ?? "", isNested: false)
            }
        }
    }

    func number(_ name: String) -> Double? {
        guard case .number(let number, _)? = members.last(where: { $0.name == name })?.value,
            number.isFinite
        else { return nil }
        return number
    }

    func text(_ name: String) -> String? {
        guard case .text(let text)? = members.last(where: { $0.name == name })?.value else {
            return nil
        }
        return text
    }

    func flag(_ name: String) -> Bool? {
        guard case .flag(let flag)? = members.last(where: { $0.name == name })?.value else {
            return nil
        }
        return flag
    }

    private mutating func take(_ text: inout BodyJSON, _ name: String, isNested: Bool) throws {
        guard text.next() == UInt8(ascii: "{"), !isNested else {
            let value = try text.value()
            guard members.count < Self.mostMembers else { return }
            members.append((name, Self.value(text.bytes, value)))
            return
        }
        try text.object { text, inner in
            let inner = JSONString.read(text.bytes, inner) ?? ""
            try take(&text, "\(name).\(inner)", isNested: true)
        }
    }

    private static func value(_ bytes: ByteView, _ range: Range<Int>) -> Value {
        switch bytes[range.lowerBound] {
        case UInt8(ascii: "\""):
            return .text(String((JSONString.read(bytes, range) ?? "…").prefix(longest)))
        case UInt8(ascii: "t"): return .flag(true)
        case UInt8(ascii: "f"): return .flag(false)
        default: break
        }
        let text = String(decoding: bytes[range].prefix(longest), as: UTF8.self)
        guard range.count <= 40, let number = Double(text) else { return .other(text) }
        return .number(number, text: text)
    }
}
