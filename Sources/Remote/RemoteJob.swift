// One job of the server's list (waypost-protocol(7), JOBS).
package import Host
import JSON

/// A job as the server asks for it; whether it is done is decided by `JobRunner`.
package struct RemoteJob: Sendable, Equatable {
    package enum Action: Sendable, Equatable {
        case report
        case sync
        case restart(source: String)
        /// Records that were uploaded in a span of time; nil: of all streams.
        case resend(stream: String?, since: WallTime, until: WallTime?)
        /// Held sound of a span of time is to be uploaded.
        case audio(from: WallTime, to: WallTime)
        case settings(SettingsOffer)
        case upgrade(UpgradeOffer)
        /// It is not done, for this reason.
        case invalid(String)
    }

    /// The longest id, kind or name in characters (Unicode scalars).
    static let longestText = 64

    let id: String
    let kind: String
    /// It is not begun after this time.
    private(set) var expires: WallTime?
    private(set) var action: Action

    /// Returns nil without an id: then there is nothing to answer.
    init?(_ value: JSONValue) {
        guard case .object(let members) = value, let id = members.text("id"),
            id.utf8.allSatisfy({ $0 < 0x80 })
        else { return nil }
        self.id = id
        kind = members.text("kind") ?? ""
        action = Self.action(kind, members)
        // The `until` of a resend is the end of its span.
        guard kind != "resend", members["until"] != nil else { return }
        expires = members.time("until")
        if expires == nil { action = .invalid("until is not an RFC 3339 time") }
    }

    private static func action(_ kind: String, _ members: [String: JSONValue]) -> Action {
        switch kind {
        case "report": return .report
        case "sync": return .sync
        case "restart":
            let source = members.text("source")
            return source.map { .restart(source: $0) } ?? .invalid("a restart names its source")
        case "resend":
            let (stream, until) = (members.text("stream"), members.time("until"))
            guard let since = members.time("since"), (members["until"] == nil) == (until == nil),
                (members["stream"] == nil) == (stream == nil), until.map({ since < $0 }) ?? true
            else {
                return .invalid("a resend has a since, and may have an until after it and a stream")
            }
            return .resend(stream: stream, since: since, until: until)
        case "audio":
            guard let from = members.time("from"), let to = members.time("to"), from < to else {
                return .invalid("sound has a from, and a to after it")
            }
            return .audio(from: from, to: to)
        case "settings":
            return SettingsOffer(members).map { .settings($0) }
                ?? .invalid(
                    "settings have a version, a recipient (for) and a text without control characters"
                )
        case "upgrade":
            return UpgradeOffer(members).map { .upgrade($0) }
                ?? .invalid("an upgrade has a version as Debian writes it, such as 0.2.0")
        default: return .invalid("this version of Waypost has no jobs of the kind \"\(kind)\"")
        }
    }
}

extension [String: JSONValue] {
    /// A member that is a short text; nil for any other value.
    func text(_ name: String) -> String? {
        guard case .text(let text)? = self[name], text.isPrintable(atMost: RemoteJob.longestText)
        else { return nil }
        return text
    }

    fileprivate func time(_ name: String) -> WallTime? {
        text(name).flatMap { WallTime(rfc3339: $0) }
    }
}
