// One job that this server asks of a device (waypost-protocol(7), JOBS).
import Host

/// A job: its kind and parameters, and the time until which it is offered.
package struct DeviceJob: Sendable {
    package let id: String
    package let kind: String
    /// `source`, or `stream`, `since` and `until`: those that its kind has.
    let parameters: [String: String]
    let added: WallTime
    let expires: WallTime

    /// Whether a device is still offered it.
    ///
    /// The `until` of a resend is the end of its span, so no device can tell that it has expired.
    func isOffered(at now: WallTime) -> Bool { kind != "resend" || now < expires }

    /// As a device gets it.
    var object: [String: String] {
        let until = kind == "resend" ? [:] : ["until": expires.rfc3339]
        return parameters.merging(until) { $1 }.merging(["id": id, "kind": kind]) { $1 }
    }
}
