// Checks a TOML text by the names of its keys alone, where the keys themselves are not linked.
import Host

/// Names of keys that a text may set.
package struct KeyNames: Sendable {
    /// One mistake; `line` counts from 1.
    package struct Problem: Sendable, Equatable {
        package var line: Int
        package var message: String

        package init(line: Int, message: String) { (self.line, self.message) = (line, message) }
    }

    /// Dotted paths; a part `*` is the name of a table that users choose.
    private let paths: [[Substring]]
    /// The message for any other key.
    private let refusal: String

    /// `paths`: such as `upload.interval` and `stream.*.max_rate`.
    package init(_ paths: [String], refusal: String) {
        self.paths = paths.map { $0.split(separator: ".") }
        self.refusal = refusal
    }

    /// Returns the mistakes of a text in the order of its lines: its TOML, and its keys.
    ///
    /// Values are not checked. Of a table that is not allowed, only the table is named.
    package func problems(in text: String) -> [Problem] {
        let bytes = Array(text.utf8)
        do {
            return problems(of: try TOMLDocument(bytes).entries())
        } catch {
            return TOMLDiagnostic.mistakes(in: bytes, error)
                .map { Problem(line: $0.line, message: $0.message) }
                .sorted { $0.line < $1.line }
        }
    }

    private func problems(of entries: [TOMLEntry]) -> [Problem] {
        var refused: Set<[Substring]> = []
        let problems = entries.compactMap { entry -> Problem? in
            let parts = entry.path.split(separator: ".")
            guard !isAllowed(parts, isTable: entry.value == .table) else { return nil }
            let isInRefused = refused.contains(Array(parts.dropLast()))
            refused.insert(parts)
            if isInRefused { return nil }
            return Problem(line: entry.line, message: "\(printable(entry.path)): \(refusal)")
        }
        // A dotted key may add to a table that began before.
        return problems.sorted { $0.line < $1.line }
    }

    /// Returns whether a key is in the list, or a table leads to one.
    private func isAllowed(_ parts: [Substring], isTable: Bool) -> Bool {
        paths.contains { path in
            (isTable ? parts.count <= path.count : parts.count == path.count)
                && zip(parts, path).allSatisfy { $0 == $1 || $1 == "*" }
        }
    }
}
