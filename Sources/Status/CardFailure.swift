// A problem that the import of a card found.
import Host

/// A problem with a card, reported to the person who wrote it.
package struct CardFailure: Error, Codable, Sendable, Equatable, CustomStringConvertible {
    /// The file's name on the card; empty for the card itself, `the stick` for a stick.
    package var file: String
    @OrNull package var line: Int?
    package var what: String
    package var remedy: String

    package init(file: String, line: Int? = nil, _ what: String, _ remedy: String) {
        (self.file, self.what, self.remedy) = (file, what, remedy)
        _line = OrNull(wrappedValue: line)
    }

    /// `the card`, or a file with the line.
    package var place: String {
        file.isEmpty ? "the card" : line.map { "\(file):\($0)" } ?? file
    }

    /// One line, as in `status` and the log.
    package var description: String { "\(place): \(what); \(remedy)" }
}
