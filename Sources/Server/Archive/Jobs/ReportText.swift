// The text of a device's report, from the record of its reply.
import Host
import JSON

/// A report as text; `--json` has all of it.
package struct ReportText {
    /// The characters of a printed status that are shown.
    private static let maxPrinted = 64_000

    private let reply: JSONValue

    /// `record`: a line of the archive.
    package init(_ record: String) { reply = (try? JSONValue(Array(record.utf8))) ?? .null }

    package var isDone: Bool { reply["state"].words == "done" }

    /// The status as `waypost status` prints it, and what `waypost doctor` found.
    package var text: String {
        let head = ["kind", "state", "timestamp", "message"].map { reply[$0].words }
        let printed = reply["detail"]["text"].words.unicodeScalars.prefix(Self.maxPrinted)
        let lines = printed.split(omittingEmptySubsequences: false) { $0 == "\n" }
        let status = printed.isEmpty ? mainLines : [[]] + lines.map { [String($0)] }
        // A device may send anything.
        return ([head] + status + findings).map { line in
            line.filter { !$0.isEmpty }.joined(separator: " ").blanked
        }.joined(separator: "\n")
    }

    /// The main lines of the status of a device that sends no printed one.
    private var mainLines: [[String]] {
        let status = reply["detail"]["status"]
        var lines = [["waypost", status["version"].words, status["state"].words]]
        lines += status["reasons"].elements.map { [" ", $0.words] }
        lines += status["sources"].members.map { name, source in
            [name + ":"] + ["state", "reason", "detail"].map { source[$0].words }
        }
        return lines
            + status["streams"].members.map { name, stream in
                let failure = stream["last_error"]["message"].words
                return [
                    "\(name): \(stream["pending"].words) pending,", stream["uploaded"].words,
                    "uploaded", failure,
                ]
            }
    }

    private var findings: [[String]] {
        reply["detail"]["doctor"]["checks"].elements.filter { $0["state"].words != "ok" }
            .map { check in
                ["doctor:"] + ["part", "state", "what", "next"].map { check[$0].words }
            }
    }
}

extension JSONValue {
    /// A member of an object; null for anything else.
    fileprivate subscript(name: String) -> JSONValue {
        if case .object(let members) = self { members[name] ?? .null } else { .null }
    }

    fileprivate var members: [(String, JSONValue)] {
        guard case .object(let members) = self else { return [] }
        return members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    fileprivate var elements: [JSONValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    /// A text or a number; empty for anything else.
    fileprivate var words: String {
        switch self {
        case .text(let text), .number(let text): text
        default: ""
        }
    }
}
