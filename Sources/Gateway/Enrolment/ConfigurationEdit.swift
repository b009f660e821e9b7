// Changes single keys in the text of a configuration, and leaves the rest as a person wrote it.
import Host

/// The text of a file; whoever edits checks what it says afterwards.
struct ConfigurationEdit {
    /// Without their ends; from a FAT card each may have a return at its end.
    private var lines: [String]

    init(_ text: String) {
        // By bytes: a return and a line feed are one Character.
        lines = text.utf8.split(separator: 10, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    var text: String { lines.joined(separator: "\n") }

    /// Puts a text in place of the key's value; of a key that is commented out, or not there, in its section.
    mutating func set(_ key: String, to value: String, in section: String) {
        let quoted = value.replacing(text: "\\", with: "\\\\").replacing(text: "\"", with: "\\\"")
        let line = "\(key) = \"\(quoted)\""
        let root = lines.prefix { !Self.trimmed($0).hasPrefix("[") }
        if let place = root.firstIndex(where: { Self.isKey("\(section).\(key)", $0[...]) }) {
            return replace(place, "\(section).\(line)")
        }
        // A section that has keys here cannot have a header, too.
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

    /// `section.key = …`, whatever the key.
    private static func isKey(of section: String, _ line: String) -> Bool {
        trimmed(line).prefix { $0 != "=" && $0 != "#" }.hasPrefix("\(section).")
    }

    private static func trimmed(_ line: String) -> Substring {
        line.drop { $0 == " " || $0 == "\t" || $0 == "\u{FEFF}" }
    }

    private static func end(of line: String) -> String { line.hasSuffix("\r") ? "\r" : "" }
}
