// Escapes the parts of a line in InfluxDB's line protocol (docs.influxdata.com, "Line protocol").

/// Escapes names and values; replaces line ends, which the protocol does not support.
enum LineProtocol {
    /// Escapes a tag's key or value, or a field's key: comma, equals sign and space.
    ///
    /// A backslash has no escape. Before an escaped character, or at the end, it would start an
    /// escape, so it becomes a slash there.
    static func name(_ text: String) -> String { escaped(text, [",", "=", " "]) }

    /// Escapes a measurement: comma and space.
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

    /// Quotes a field's value, and escapes quotes and backslashes.
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

    /// Converts a JSON number to a float; nil if it is not finite.
    static func float(_ number: String) -> String? {
        guard let value = Double(number), value.isFinite else { return nil }
        return "\(value)"
    }

    /// Converts a JSON number to an integer; nil if it does not fit 64 bits.
    static func integer(_ number: String) -> String? { Int64(number).map { "\($0)i" } }

    /// Replaces a control character by a space.
    private static func printed(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        scalar.value < 32 || scalar.value == 127 ? " " : scalar
    }
}
