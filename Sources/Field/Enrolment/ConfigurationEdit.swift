// Changes single keys in the text of a configuration and leaves the rest as it is.
import Host

/// The text of a configuration under edit; the caller must parse the result to check it.
struct ConfigurationEdit {
    /// Lines without line feeds; those from a FAT card may end with a carriage return.
    private var lines: [String]

    init(_ text: String) {
        // By bytes, because CR LF is one Character.
        lines = text.utf8.split(separator: 10, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    var text: String { lines.joined(separator: "\n") }

    /// Sets the key to a text; replaces a commented-out key, or adds the key to its section.
    mutating func set(_ key: String, to value: String, in section: String) {
        let quoted = value.replacing(text: "\\", with: "\\\\").replacing(text: "\"", with: "\\\"")
        set(key, literal: "\"\(quoted)\"", in: section)
    }

    /// Sets the key to a value in TOML, in the same way.
    mutating func set(_ key: String, literal: String, in section: String) {
        let line = "\(key) = \(literal)"
        let root = lines.prefix { !Self.trimmed($0).hasPrefix("[") }
        if let place = root.firstIndex(where: { Self.isKey("\(section).\(key)", $0[...]) }) {
            return replace(place, "\(section).\(line)")
        }
        // A section with dotted keys at the top cannot have a header, too.
        if let place = root.lastIndex(where: { Self.isKey(of: section, $0) }) {
            return lines.insert("\(section).\(line)" + Self.end(of: lines[place]), at: place + 1)
        }
        guard let header = lines.firstIndex(where: { Self.isHeader($0, of: section) }) else {
            return append("[\(section)]", line)
        }
        let rest = lines[(header + 1)...]
        let body = rest.prefix { !Self.trimmed($0).hasPrefix("[") }
        let place =
            body.firstIndex { Self.isKey(key, $0[...]) }
            ?? body.firstIndex { Self.isKey(key, Self.trimmed($0).dropFirst()) }
        if let place { return replace(place, line) }
        lines.insert(line + Self.end(of: lines[header]), at: header + 1)
    }

    private mutating func append(_ header: String, _ line: String) {
        if lines.last?.isEmpty == false { lines.append("") }
        if lines.count > 1 { lines.insert("", at: lines.count - 1) }
        lines.insert(contentsOf: [header, line], at: lines.count - 1)
    }

    private mutating func replace(_ place: Int, _ line: String) {
        lines[place] = line + Self.end(of: lines[place])
    }

    private static func isHeader(_ line: String, of section: String) -> Bool {
        trimmed(line).prefix { $0 != "#" }.filter { !$0.isWhitespace } == "[\(section)]"
    }

    private static func isKey(_ key: String, _ line: Substring) -> Bool {
        let line = line.drop { $0 == " " || $0 == "\t" }
        return line.hasPrefix(key)
            && line.dropFirst(key.count).first { $0 != " " && $0 != "\t" } == "="
    }

    /// Returns whether a line is `section.key = …`, for any key.
    private static func isKey(of section: String, _ line: String) -> Bool {
        trimmed(line).prefix { $0 != "=" && $0 != "#" }.hasPrefix("\(section).")
    }

    private static func trimmed(_ line: String) -> Substring {
        line.drop { $0 == " " || $0 == "\t" || $0 == "\u{FEFF}" }
    }

    private static func end(of line: String) -> String { line.hasSuffix("\r") ? "\r" : "" }
}
