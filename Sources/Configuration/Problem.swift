// Configuration errors and warnings as people read them.

/// One error, or one warning, in a configuration.
package struct ConfigurationProblem: Sendable, Equatable, CustomStringConvertible {
    /// `file:line`, `file:line:column`, the file alone or the name of an environment variable.
    package var place: String
    /// The dotted key; empty if the problem concerns the whole place.
    package var key: String
    /// The problem, with the nearest valid key if one is similar.
    package var message: String
    /// The allowed values.
    package var allowed: String?

    package init(place: String, key: String = "", message: String, allowed: String? = nil) {
        self.place = place
        self.key = key
        self.message = message
        self.allowed = allowed
    }

    /// The line for people: `file:line: key: problem; allowed: …`.
    package var description: String {
        let parts = [place, key, message].filter { !$0.isEmpty }
        return parts.joined(separator: ": ") + (allowed.map { "; allowed: \($0)" } ?? "")
    }
}

/// All errors of a configuration: those of the file in its order, then the environment's.
///
/// A command prints the description and exits with status 78.
package struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    package var problems: [ConfigurationProblem]
    /// The warnings found besides the errors.
    package var warnings: [ConfigurationProblem]
    /// The file could not be read: the disk failed, and may succeed at another time.
    package var isUnread = false

    package init(_ problems: [ConfigurationProblem], warnings: [ConfigurationProblem] = []) {
        self.problems = problems
        self.warnings = warnings
    }

    /// One problem per line.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

/// Returns the word most similar to `text`; nil if none is similar enough.
///
/// The last part is also compared alone, to find a key written in the wrong section.
package func nearest(to text: String, among words: [String]) -> String? {
    let parts = text.split(separator: ".").map { $0.filter { $0 != "\"" } }
    guard let last = parts.last, text.utf8.count <= 64 else { return nil }
    let whole = parts.joined(separator: ".")
    let scored = words.map { word -> (word: String, score: Int) in
        let tail = String(word.split(separator: ".").last ?? "")
        let inPlace = editDistance(whole, word)
        let misplaced = tail.utf8.count > 3 ? editDistance(last, tail) + 1 : inPlace
        return (word, min(inPlace, misplaced))
    }
    guard let best = scored.min(by: { $0.score < $1.score }) else { return nil }
    return best.score <= max(1, min(3, last.utf8.count / 2)) ? best.word : nil
}

/// Counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
func editDistance(_ left: String, _ right: String) -> Int {
    let (a, b) = (Array(left.utf8), Array(right.utf8))
    var older: [Int] = []
    var old = Array(0...b.count)
    for i in a.indices {
        var row = [i + 1]
        for j in b.indices {
            var cost = min(old[j] + (a[i] == b[j] ? 0 : 1), old[j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                cost = min(cost, older[j - 1] + 1)
            }
            row.append(cost)
        }
        (older, old) = (old, row)
    }
    return old.last ?? 0
}
