// Turns the payload of an MQTT message into the members of a record.
import Host
import JSON
import MQTT

/// The members of a record made from a message, and the time that the message gives.
struct MessageMembers: Sendable, Equatable {
    /// The members, without braces and without blanks between their parts.
    var members: [UInt8]
    /// The object's own `timestamp`, if it is one.
    var given: WallTime?

    /// Makes members of any payload in UTF-8; throws the reason if there are none.
    ///
    /// A JSON object gives its members, a number or a boolean `value`, and any other text `text`:
    /// also an object that a record cannot be, for example one with a duplicate name. `topic` comes
    /// first, as `mqtt_topic` if the object has a `topic`. Names that the gateway uses itself get
    /// `mqtt_` before them.
    init(_ message: MQTTMessage) throws(IntakeRefusal) {
        guard String(validating: message.payload, as: UTF8.self) != nil else {
            throw IntakeRefusal("not UTF-8")
        }
        if let object = Self.object(message) {
            self = object
        } else {
            members = Self.other(message)
        }
    }

    private init(members: [UInt8], given: WallTime?) {
        (self.members, self.given) = (members, given)
    }

    // MARK: Objects

    private static func object(_ message: MQTTMessage) -> Self? {
        guard message.payload.first(where: { !$0.isJSONBlank }) == UInt8(ascii: "{"),
            var found = try? read(message.payload)
        else { return nil }
        let name = found.hasTopic ? "mqtt_topic" : "topic"
        if !found.hasOtherTopic || !found.hasTopic {
            let own = field(name) { $0.value(message.topic) }
            found.members = own + (found.members.isEmpty ? [] : [UInt8(ascii: ",")]) + found.members
        }
        // Two names may have become one, and the limits of a record hold for these members.
        let text = Array("{".utf8) + found.members + Array("}".utf8)
        guard let members = try? IntakeLine.members(of: text) else { return nil }
        return Self(members: members, given: found.given)
    }

    private struct Found {
        var members: [UInt8] = []
        var given: WallTime?
        var hasTopic = false
        /// The object has a member `mqtt_topic`.
        var hasOtherTopic = false
    }

    private static func read(_ payload: [UInt8]) throws(JSONFault) -> Found {
        var cursor = JSONCursor(payload, depthLimit: IntakeLine.depthLimit, foldsCase: true)
        var found = Found()
        try cursor.openObject("an object")
        while let name = try cursor.nextName() {
            let folded = String(decoding: name.text.map(\.asciiLowercased), as: UTF8.self)
            var value: [UInt8] = []
            try cursor.copyValue(to: &value)
            if folded == "timestamp", let given = try? IntakeLine.given(value) {
                found.given = given
                continue
            }
            found.hasTopic = found.hasTopic || folded == "topic"
            found.hasOtherTopic = found.hasOtherTopic || folded == "mqtt_topic"
            if !found.members.isEmpty { found.members.append(UInt8(ascii: ",")) }
            if IntakeLine.reserved.contains(folded) {
                found.members += field("mqtt_\(folded)") { $0.raw(value) }
            } else {
                found.members += name.written + [UInt8(ascii: ":")] + value
            }
        }
        try cursor.end()
        return found
    }

    // MARK: Everything else

    private static func other(_ message: MQTTMessage) -> [UInt8] {
        let value = scalar(message.payload)
        let content = field(value == nil ? "text" : "value") {
            if let value {
                $0.raw(value)
            } else {
                $0.value(String(decoding: message.payload, as: UTF8.self))
            }
        }
        return field("topic") { $0.value(message.topic) } + [UInt8(ascii: ",")] + content
    }

    /// Returns a number or a boolean as JSON; nil for anything else.
    private static func scalar(_ payload: [UInt8]) -> [UInt8]? {
        guard let first = payload.first(where: { !$0.isJSONBlank }),
            first.isDigit || "-tf".utf8.contains(first)
        else { return nil }
        var (cursor, value) = (JSONCursor(payload), [UInt8]())
        do throws(JSONFault) {
            try cursor.copyValue(to: &value)
            try cursor.end()
        } catch {
            return nil
        }
        return value
    }

    private static func field(_ name: String, _ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.key(name)
        write(&writer)
        return writer.bytes
    }
}
