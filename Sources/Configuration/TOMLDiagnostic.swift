// Explains the mistakes that people make most often in a TOML file.
import Host

/// Recognises mistakes in lines of a file that is not valid TOML (toml.io, version 1.0.0).
enum TOMLDiagnostic {
    /// The quotes that phones and word processors write.
    private static let curly = "\u{201C}\u{201D}\u{201E}\u{2018}\u{2019}\u{AB}\u{BB}"
    private static let words = ["True": "true", "False": "false", "TRUE": "true", "FALSE": "false"]

    /// A mistake in a line; the column is known only of the place where the parser stopped.
    typealias Mistake = (line: Int, column: Int?, message: String)

    /// Returns the mistakes of a text that the parser refused with `error`.
    ///
    /// The parser stops at the first one; all lines with a usual mistake are named, too.
    static func mistakes(in bytes: [UInt8], _ error: TOMLError) -> [Mistake] {
        let lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        var mistakes = lines.enumerated().compactMap { index, text -> Mistake? in
            explanation(of: text).map { (index + 1, nil, $0) }
        }
        if error.description.contains(text: "cannot redefine existing table") {
            mistakes += repeatedTables(in: lines).map { ($0.line, nil, $0.message) }
        }
        guard !mistakes.contains(where: { $0.line == error.line }) else { return mistakes }
        let hint = isUnquoted(error) ? " (put text in double quotes)" : ""
        let message = "not valid TOML: \(printable(error.description, limit: 300))\(hint)"
        return mistakes + [(error.line, error.column, message)]
    }

    /// Returns what is wrong with a line and how to write it; nil if it is another mistake.
    private static func explanation(of line: some StringProtocol) -> String? {
        let code = line.prefix { $0 != "#" }
        // Between straight quotes, curly ones are part of the text.
        let straight = code.utf8.count { $0 == UInt8(ascii: "\"") }
        if straight < 2, code.contains(where: { curly.contains($0) }) {
            return "holds curly quotes; write straight ones: \""
        }
        guard let equals = code.firstIndex(of: "=") else { return nil }
        let word = String(code[code.index(after: equals)...].filter { !$0.isWhitespace })
        return words[word].map { "\(word) is not a value; write \($0), in lower case" }
    }

    /// Returns the tables that begin a second time, as in a pasted block, with their lines.
    private static func repeatedTables(in lines: [String]) -> [(line: Int, message: String)] {
        var first: [String: Int] = [:]
        return lines.enumerated().compactMap { index, text in
            let header = text.prefix { $0 != "#" }.filter { !$0.isWhitespace }
            guard header.hasPrefix("["), header.hasSuffix("]"),
                let before = first.updateValue(first[header] ?? index + 1, forKey: header)
            else { return nil }
            let what = "\(printable(header)) redefines the table that begins in line \(before)"
            return (index + 1, "\(what); write the keys there")
        }
    }

    /// Returns true if toml++ stopped at a value that may be text without quotes.
    private static func isUnquoted(_ error: TOMLError) -> Bool {
        ["parsing value:", "parsing boolean:", "parsing decimal", "parsing float"].contains {
            error.description.contains(text: $0)
        }
    }
}
