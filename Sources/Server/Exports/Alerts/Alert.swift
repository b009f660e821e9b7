// An alert about a change of a device's state.
import Host
import JSON
import ServerArchive
import ServerIndex

enum AlertKind: String, Codable, Sendable {
    case late
    case back
    case losing
    case critical
    /// The device halted a rollout of settings.
    case halted

    fileprivate var words: String {
        switch self {
        case .late, .back, .critical: "is \(rawValue)"
        case .losing: "is losing records"
        case .halted: "halted a rollout"
        }
    }
}

/// One change of one device; in snake case its members are the JSON object of waypost-receiver(1).
struct Alert: Codable, Sendable, Equatable {
    let alert: AlertKind
    /// Identical however often the alert is sent.
    let alertId: String
    /// The time it was found, RFC 3339.
    let at: String
    let deviceId: String
    let lastSeen: String
    /// In the last day, as far as events report it.
    let lostRecords: Int64
    let reason: String
    /// A sentence for people.
    let text: String
    let version: String

    /// The maximum length of a reason, which may contain text from outside.
    private static let longestReason = 300

    /// `now`: milliseconds since 1970.
    init(_ kind: AlertKind, _ state: DeviceState, because reason: String, at now: Int64) {
        alert = kind
        alertId = "\(state.id)-\(kind.rawValue)-\(now)"
        at = WallTime(milliseconds: now).rfc3339
        deviceId = state.id
        lastSeen = WallTime(milliseconds: state.lastSeen).rfc3339
        lostRecords = state.lost
        self.reason = printable(reason, limit: Self.longestReason)
        let because = self.reason.isEmpty ? "" : ": \(self.reason)"
        text = "\(state.id) \(kind.words)\(because)"
        version = printable(state.version)
    }

    var json: String { String(decoding: encodedJSON(self), as: UTF8.self) }

    init(json: String) throws {
        self = try JSONInput.decode(from: Array(json.utf8), snakeCase: true)
    }
}

/// The state of a device as alerts need it, the same that the page shows.
package struct DeviceState: Sendable {
    package var id: String
    /// Milliseconds since 1970.
    package var lastSeen: Int64
    package var version = ""
    /// The reasons; empty if it is not late.
    var late: [String] = []
    package var critical: [String] = []
    package var lost: Int64 = 0
    /// True if a person revoked it; then there are no alerts.
    package var isRevoked = false
    /// True if its events could be read; otherwise alerts only report silence.
    package var isWhole = true
}

extension DeviceView {
    /// Nil if the device was never in contact.
    package var state: DeviceState? {
        lastSeen.map {
            DeviceState(
                id: id,
                lastSeen: $0,
                version: contact?.version ?? "",
                late: findings.filter { $0.level == .late }.map(\.reason),
                critical: findings.filter { $0.level == .critical }.map(\.reason),
                lost: lost,
                isRevoked: level == .revoked,
                isWhole: !facts.isUnreadable
            )
        }
    }
}
