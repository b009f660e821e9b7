// The names of the files that a person may put on a card or a stick, and their problems.
import Configuration
import Host
import Setup
import Status

/// A kind of file that the gateway reads from a card.
enum CardFile: String, CaseIterable, Sendable {
    case configuration = "waypost.toml"
    case token = "waypost.token"
    case code = "waypost.code"
    case keys = "waypost.s3"

    /// Secrets are overwritten on the card once the device has stored them.
    var isSecret: Bool { self != .configuration }

    /// The name of its content in messages.
    var noun: String {
        switch self {
        case .configuration: "configuration"
        case .token: "token"
        case .code: "enrolment code"
        case .keys: "keys of the bucket"
        }
    }

    /// Returns whether a name on the card is this file's: in any case, also with `.txt` appended.
    func isNamed(_ name: String) -> Bool {
        let name = name.lowercased()
        return name == rawValue || name == rawValue + ".txt"
    }

    /// The size limit in bytes on the card; UTF-16 takes two bytes per character.
    var limit: Int { self == .configuration ? 2 * KeyTable<Configuration>.largestFile : 16_384 }
}

extension CardFailure {
    /// Converts a configuration problem of the file `name`.
    init(_ problem: ConfigurationProblem, in name: String) {
        let place = problem.place.dropFirst(name.count).split(separator: ":")
        let line = problem.place.hasPrefix(name) ? place.first.flatMap { Int($0) } : nil
        let (message, advice) = Self.split(problem)
        let what = [problem.key, message].filter { !$0.isEmpty }.joined(separator: ": ")
        self.init(file: name, line: line, what, advice)
    }

    /// Returns the message and the remedy; some messages hold both, separated by a semicolon.
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
        if problem.message.contains(text: "end-of-file") { return CardError.halfWritten }
        if problem.message.contains(text: "parsing table header") {
            return "write the name of a section as: [upload]"
        }
        if problem.message.hasPrefix("not valid TOML") {
            return "write the line as: name = \"text\", or name = 5, below its [section]"
        }
        return "correct it"
    }
}
