// Makes text from outside safe for a terminal, a log line and the database.

extension Unicode.Scalar {
    /// The scalar could control a terminal, reverse text, or shows nothing.
    ///
    /// Escape sequences begin with ESC or, as one byte of Latin 1, with a C1 control.
    package var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse,
            .unassigned:
            true
        default: false
        }
    }

    /// A text of several lines has none of these: invisible, and neither a line's end nor a tab.
    package var isForbiddenInLines: Bool {
        isInvisible && self != "\n" && self != "\r" && self != "\t"
    }
}

extension StringProtocol {
    /// Returns whether the text has 1 to `limit` characters (Unicode scalars), none of them invisible.
    package func isPrintable(atMost limit: Int) -> Bool {
        !isEmpty && unicodeScalars.prefix(limit + 1).count <= limit
            && !unicodeScalars.contains(where: \.isInvisible)
    }

    /// Returns the text as one line of at most `limit` characters, without invisible ones.
    package func plainWords(atMost limit: Int) -> String {
        let line = split(whereSeparator: { $0.isWhitespace || $0.isNewline }).joined(separator: " ")
        let shown = line.unicodeScalars.filter { !$0.isInvisible }
        return String(String.UnicodeScalarView(shown.prefix(limit)))
    }

    /// The same text with a space for each invisible character.
    package var blanked: String {
        let scalars = unicodeScalars.map { $0.isInvisible ? " " : $0 }
        return String(String.UnicodeScalarView(scalars))
    }
}

/// Returns text from outside on one line, cut to `limit`, to quote in a message or a comment.
package func printable(_ text: String, limit: Int = 60) -> String {
    let short = text.unicodeScalars.prefix(limit).map { scalar in
        scalar.isInvisible ? "?" : String(scalar)
    }
    return short.joined() + (text.unicodeScalars.count > limit ? "…" : "")
}

/// Returns a URI without its user and password (`ntrip://…@HOST`); any other text as it is.
package func withoutUser(_ text: String) -> String {
    guard let start = text.firstRange(ofPart: "://")?.upperBound,
        let end = text.lastIndex(of: "@"), start <= end
    else { return text }
    return "\(text[..<start])…\(text[end...])"
}

/// Returns the text without leading and trailing white space.
package func trimmed(_ text: some StringProtocol) -> String {
    let start = text.drop(while: \.isWhitespace)
    return String(start.reversed().drop(while: \.isWhitespace).reversed())
}

extension UInt8 {
    /// An ASCII digit.
    package var isDigit: Bool { (48...57).contains(self) }

    /// An ASCII letter.
    package var isLetter: Bool { (65...90).contains(self) || (97...122).contains(self) }

    /// The lower-case letter of an ASCII capital; any other byte as it is.
    package var asciiLowercased: UInt8 { (65...90).contains(self) ? self | 0x20 : self }
}
