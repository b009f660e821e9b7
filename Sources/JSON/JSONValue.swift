// JSON as a tree, for small and rare texts: stored settings, requests, figures.

/// A JSON value (RFC 8259).
package enum JSONValue: Sendable, Equatable {
    case null
    case flag(Bool)
    /// The digits as written, so that numbers beyond any machine type are not lost.
    case number(String)
    case text(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Parses a JSON text; throws if it is malformed or nested deeper than `depthLimit`.
    package init(_ bytes: [UInt8], depthLimit: Int = 32) throws(JSONError) {
        var cursor = JSONCursor(bytes, depthLimit: depthLimit)
        self = try cursor.value()
        try cursor.end()
    }

    /// Writes the value, members sorted by name.
    package func write(to json: inout JSONWriter) {
        switch self {
        case .null: json.raw("null")
        case .flag(let flag): json.raw(flag ? "true" : "false")
        case .number(let digits): json.raw(digits)
        case .text(let text): json.value(text)
        case .array(let parts): json.array { for part in parts { part.write(to: &$0) } }
        case .object(let members):
            json.object {
                for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                    $0.key(name)
                    value.write(to: &$0)
                }
            }
        }
    }
}

extension JSONCursor {
    /// Parses the next value of any kind.
    fileprivate mutating func value() throws(JSONError) -> JSONValue {
        switch next() {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "\""):
            return .text(String(decoding: try text("a text"), as: UTF8.self))
        default: break
        }
        var word: [UInt8] = []
        try copyValue(to: &word)
        switch String(decoding: word, as: UTF8.self) {
        case "null": return .null
        case "true": return .flag(true)
        case "false": return .flag(false)
        case let digits: return .number(digits)
        }
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        var members: [String: JSONValue] = [:]
        try openObject("an object")
        while let name = try nextName() {
            members[String(decoding: name.text, as: UTF8.self)] = try value()
        }
        return .object(members)
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        var parts: [JSONValue] = []
        try enter()
        while try !closes(UInt8(ascii: "]"), isFirst: parts.isEmpty) { parts.append(try value()) }
        return .array(parts)
    }
}
