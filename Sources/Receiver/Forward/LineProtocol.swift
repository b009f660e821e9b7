// The parts of a line of InfluxDB's line protocol (docs.influxdata.com, "Line protocol").

/// What stands in a line has no end of line in it: the protocol knows none in names and values.
enum LineProtocol {
    /// A tag's key or value, or a field's key: comma, equals sign and space are escaped.
    ///
    /// A backslash needs no escape, and has none: before a character that is escaped, or at the end, it would be
    /// taken for one, and becomes a slash there.
    static func name(_ text: String) -> String { escaped(text, [",", "=", " "]) }

    /// A measurement: comma and space are escaped.
    static func measurement(_ text: String) -> String { escaped(text, [",", " "]) }

    private static func escaped(_ text: String, _ special: Set<Unicode.Scalar>) -> String {
        guard !text.utf8.allSatisfy({ $0 > 32 && $0 != 127 && !#",=\"#.utf8.contains($0) }) else {
            return text
        }
        var result = String.UnicodeScalarView()
        let scalars = Array(text.unicodeScalars.map(printed))
        for (index, scalar) in scalars.enumerated() {
            let next = index + 1 < scalars.count ? scalars[index + 1] : ","
            if special.contains(scalar) { result.append("\\") }
            result.append(scalar == "\\" && special.contains(next) ? "/" : scalar)
        }
        return String(result)
    }

    /// A field's value: in quotes, with quotes and backslashes escaped.
    static func string(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ $0 >= 32 && $0 != 127 && $0 != 34 && $0 != 92 }) else {
            return "\"\(text)\""
        }
        var result: String.UnicodeScalarView = "\"".unicodeScalars
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { result.append("\\") }
            result.append(printed(scalar))
        }
        result.append("\"")
        return String(result)
    }

    /// A number of JSON as a float; nil where no finite one is so large.
    static func float(_ number: String) -> String? {
        guard let value = Double(number), value.isFinite else { return nil }
        return "\(value)"
    }

    /// A number of JSON as an integer; nil where it is none of 64 bits.
    static func integer(_ number: String) -> String? { Int64(number).map { "\($0)i" } }

    /// A blank for a control character.
    private static func printed(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        scalar.value < 32 || scalar.value == 127 ? " " : scalar
    }
}
