// What is wrong with a configuration, in the words a person reads, each with its place.

/// One thing that is wrong (an error) or worth knowing (a warning).
package struct ConfigurationProblem: Sendable, Equatable, CustomStringConvertible {
    /// `file:line`, `file:line:column`, the file alone or the name of an environment variable.
    package var place: String
    /// The dotted key, empty where it is about the whole place.
    package var key: String
    /// What is wrong, and the nearest right key where one is near.
    package var message: String
    /// The values that would be right.
    package var allowed: String?

    package init(place: String, key: String = "", message: String, allowed: String? = nil) {
        self.place = place
        self.key = key
        self.message = message
        self.allowed = allowed
    }

    /// `file:line: key: what is wrong; allowed: …`.
    package var description: String {
        let parts = [place, key, message].filter { !$0.isEmpty }
        return parts.joined(separator: ": ") + (allowed.map { "; allowed: \($0)" } ?? "")
    }
}

/// Everything that is wrong with a configuration, in the order of the file, then the environment.
///
/// A command prints the description and exits with status 78.
package struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    package var problems: [ConfigurationProblem]
    /// What would have been warned about, had it been right.
    package var warnings: [ConfigurationProblem]
    /// It is not known what the file says: the disk did not give it, and may at another time.
    package var isUnread = false

    package init(_ problems: [ConfigurationProblem], warnings: [ConfigurationProblem] = []) {
        self.problems = problems
        self.warnings = warnings
    }

    /// One problem a line.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

/// The word of `words` that is most like `text`, if any is like it at all.
///
/// The last part counts alone too: a key written in the wrong section is near.
func nearest(to text: String, among words: [String]) -> String? {
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

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
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
