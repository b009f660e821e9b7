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
    package init(_ bytes: [UInt8], depthLimit: Int = 32) throws(JSONFault) {
        var cursor = JSONCursor(bytes, depthLimit: depthLimit)
        self = try cursor.value()
        try cursor.end()
    }

    /// Appends the value as text without white space, members sorted by name.
    package func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .flag(let flag): bytes += (flag ? "true" : "false").utf8
        case .number(let digits): bytes += digits.utf8
        case .text(let text): bytes.appendQuoted(text)
        case .array(let parts):
            Self.write(parts, between: "[", "]", to: &bytes) { $0.write(to: &$1) }
        case .object(let members):
            let members = members.sorted { $0.key < $1.key }
            Self.write(members, between: "{", "}", to: &bytes) { member, bytes in
                bytes.appendQuoted(member.key)
                bytes.append(UInt8(ascii: ":"))
                member.value.write(to: &bytes)
            }
        }
    }

    private static func write<Part>(
        _ parts: [Part],
        between start: Unicode.Scalar,
        _ end: Unicode.Scalar,
        to bytes: inout [UInt8],
        each: (Part, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: start))
        for (index, part) in parts.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            each(part, &bytes)
        }
        bytes.append(UInt8(ascii: end))
    }
}

extension JSONCursor {
    /// Parses the next value of any kind.
    fileprivate mutating func value() throws(JSONFault) -> JSONValue {
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

    private mutating func object() throws(JSONFault) -> JSONValue {
        var members: [String: JSONValue] = [:]
        try openObject("an object")
        while let name = try nextName() {
            members[String(decoding: name.text, as: UTF8.self)] = try value()
        }
        return .object(members)
    }

    private mutating func array() throws(JSONFault) -> JSONValue {
        var parts: [JSONValue] = []
        try enter()
        while try !closes(UInt8(ascii: "]"), isFirst: parts.isEmpty) { parts.append(try value()) }
        return .array(parts)
    }
}
