// The text of a device's report, from the record of its reply.
import Host
import JSON

/// The main lines of a report; `--json` has the rest.
package struct ReportText {
    private let reply: JSONValue

    /// `record`: a line of the archive.
    package init(_ record: String) { reply = (try? JSONValue(Array(record.utf8))) ?? .null }

    package var isDone: Bool { reply["state"].words == "done" }

    package var text: String {
        let (status, checks) = (reply["detail"]["status"], reply["detail"]["doctor"]["checks"])
        var lines = [["kind", "state", "timestamp", "message"].map { reply[$0].words }]
        lines.append(["waypost", status["version"].words, status["state"].words])
        lines += status["reasons"].elements.map { [" ", $0.words] }
        lines += status["sources"].members.map { name, source in
            [name + ":"] + ["state", "reason", "detail"].map { source[$0].words }
        }
        lines += status["streams"].members.map { name, stream in
            let failure = stream["last_error"]["message"].words
            return [
                "\(name): \(stream["pending"].words) pending,", stream["uploaded"].words,
                "uploaded", failure,
            ]
        }
        lines += checks.elements.filter { $0["state"].words != "ok" }.map { check in
            ["doctor:"] + ["part", "state", "what", "next"].map { check[$0].words }
        }
        // A device may send anything.
        return lines.map { line in line.filter { !$0.isEmpty }.joined(separator: " ").blanked }
            .joined(separator: "\n")
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
