// The findings of `waypost doctor`, as text and as JSON.
import Host
import JSON
package import Status

/// The result of one check.
package struct Finding: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable {
        case ok
        case warn
        case fail
    }

    /// The checked part in a word: `bluetooth`.
    package var part: String
    package var state: State
    package var what: String
    /// The remedy; nil if nothing is wrong.
    @OrNull package var next: String?

    static func ok(_ part: String, _ what: String) -> Finding {
        Finding(part: part, state: .ok, what: what, next: nil)
    }

    static func warn(_ part: String, _ what: String, next: String) -> Finding {
        Finding(part: part, state: .warn, what: what, next: next)
    }

    static func fail(_ part: String, _ what: String, next: String) -> Finding {
        Finding(part: part, state: .fail, what: what, next: next)
    }
}

/// All findings.
package struct Examination: Codable, Sendable {
    package var version: String
    package var state: StatusReport.Health
    package var checks: [Finding]

    init(version: String, checks: [Finding]) {
        self.version = version
        self.checks = checks
        let states = checks.map(\.state)
        state = states.contains(.fail) ? .critical : states.contains(.warn) ? .degraded : .healthy
    }

    /// One JSON object on one line.
    package var json: [UInt8] { encodedJSON(self) }

    /// Returns a line per finding with its remedy below, wrapped at 80 columns.
    package func text(isColoured: Bool) -> String {
        let counts = [Finding.State.fail, .warn].compactMap { state -> String? in
            let count = checks.filter { $0.state == state }.count
            return count == 0 ? nil : "\(count) \(state == .fail ? "failed" : "to look at")"
        }
        let end = counts.isEmpty ? "all is well" : counts.joined(separator: ", ")
        return checks.map { Self.lines($0, isColoured) }.joined() + "\n\(end)\n"
    }

    private static func lines(_ finding: Finding, _ isColoured: Bool) -> String {
        let code =
            switch finding.state {
            case .ok: 32
            case .warn: 33
            case .fail: 31
            }
        let word = finding.state.rawValue.column(6)
        let mark = isColoured ? "\u{1B}[1;\(code)m\(word)\u{1B}[0m" : word
        let body = finding.what.wrapped(to: width).joined(separator: "\n" + indent)
        let next = (finding.next ?? "").wrapped(to: width).map { "\(indent)  \($0)\n" }
        return mark + finding.part.column(12) + body + "\n" + next.joined()
    }

    private static let indent = String(repeating: " ", count: 18)
    private static let width = 59
}
