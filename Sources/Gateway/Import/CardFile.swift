// The files that a person may put on a card or a stick, and their names there.
import Configuration
import Host

/// A file on a card that is for the gateway.
enum CardFile: String, CaseIterable, Sendable {
    case configuration = "waypost.toml"
    case token = "waypost.token"
    case code = "waypost.code"
    case keys = "waypost.s3"

    /// It is overwritten on the card as soon as the device has it.
    var isSecret: Bool { self != .configuration }

    /// What messages call its content.
    var noun: String {
        switch self {
        case .configuration: "configuration"
        case .token: "token"
        case .code: "enrolment code"
        case .keys: "keys of the bucket"
        }
    }

    /// Whether a name on the card is this file's: in any case, with the `.txt` that editors append.
    func isNamed(_ name: String) -> Bool {
        let name = name.lowercased()
        return name == rawValue || name == rawValue + ".txt"
    }

    /// The most bytes that it may hold as it stands there; UTF-16 takes two for each character.
    var limit: Int { self == .configuration ? 2 * KeyTable<Configuration>.largestFile : 16_384 }
}

/// One thing on a card that is wrong, for the person who wrote it.
package struct CardProblem: Error, Codable, Sendable, Equatable, CustomStringConvertible {
    /// Its name on the card; empty where it is about the card, `the stick` where it is about that.
    package var file: String
    @OrNull package var line: Int?
    package var what: String
    package var remedy: String

    init(file: String, line: Int? = nil, _ what: String, _ remedy: String) {
        (self.file, self.what, self.remedy) = (file, what, remedy)
        _line = OrNull(wrappedValue: line)
    }

    /// On one line, as `status` and the log have it.
    package var description: String {
        let place = file.isEmpty ? "the card" : line.map { "\(file):\($0)" } ?? file
        return "\(place): \(what); \(remedy)"
    }
}

extension CardProblem {
    /// Of the file `name`: the checks of the configuration know a place and what is allowed there.
    init(_ problem: ConfigurationProblem, in name: String) {
        let place = problem.place.dropFirst(name.count).split(separator: ":")
        let line = problem.place.hasPrefix(name) ? place.first.flatMap { Int($0) } : nil
        let (message, advice) = Self.split(problem)
        let what = [problem.key, message].filter { !$0.isEmpty }.joined(separator: ": ")
        self.init(file: name, line: line, what, advice)
    }

    /// What is wrong, and what to do: the checks say both in one sentence where they know more than what is allowed.
    private static func split(_ problem: ConfigurationProblem) -> (String, String) {
        guard problem.allowed == nil, let end = problem.message.firstRange(ofPart: "; "),
            !problem.message[end.upperBound...].hasPrefix("did you mean")
        else { return (problem.message, remedy(problem)) }
        return (
            String(problem.message[..<end.lowerBound]), String(problem.message[end.upperBound...])
        )
    }

    private static func remedy(_ problem: ConfigurationProblem) -> String {
        if let allowed = problem.allowed { return "allowed is: \(allowed)" }
        if problem.message.contains(text: "did you mean") {
            return "write the name that is meant, or take the line out"
        }
        if problem.message.hasPrefix("unknown") {
            return "take the line out; waypost.toml(5) has all names"
        }
        if problem.message.contains(text: "redefine") { return "keep one of the two lines" }
        if problem.message.contains(text: "end-of-file") { return CardFault.halfWritten }
        if problem.message.contains(text: "parsing table header") {
            return "write the name of a section as: [upload]"
        }
        if problem.message.hasPrefix("no valid TOML") {
            return "write the line as: name = \"text\", or name = 5, below its [section]"
        }
        return "correct it"
    }
}
