// One job that this server asks of a device (waypost-protocol(7), JOBS).
import Host

/// A job: its kind and parameters, and the time until which it is offered.
package struct DeviceJob: Sendable {
    package let id: String
    package let kind: String
    /// `source`, or `stream`, `since` and `until`, or `from` and `to`, or `version` and `signature`, or those of settings:
    /// those that its kind has, each a text; the `version` of settings is an `Int64`.
    let parameters: [String: any Sendable]
    let added: WallTime
    let expires: WallTime

    /// Whether a device is still offered it.
    ///
    /// The `until` of a resend is the end of its span, so no device can tell that it has expired.
    /// Expired settings and upgrades are not offered, because a device without a clock would still
    /// try them.
    func isOffered(at now: WallTime) -> Bool {
        !["resend", "settings", "upgrade"].contains(kind) || now < expires
    }

    /// As a device gets it.
    var object: [String: Any] {
        var object: [String: Any] = parameters
        if kind != "resend" { object["until"] = expires.rfc3339 }
        return object.merging(["id": id, "kind": kind]) { $1 }
    }
}
