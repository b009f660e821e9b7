// Text of a server made fit for a terminal, a log line and the database.

extension StringProtocol {
    /// One line of at most `limit` characters, without control characters and marks that turn text around.
    func plainWords(atMost limit: Int) -> String {
        let line = split(whereSeparator: { $0.isWhitespace || $0.isNewline }).joined(separator: " ")
        let shown = line.unicodeScalars.filter { scalar in
            switch scalar.properties.generalCategory {
            // Escape sequences begin with ESC or, as one byte of Latin 1, with a C1 control.
            case .control, .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
        return String(String.UnicodeScalarView(shown.prefix(limit)))
    }
}
