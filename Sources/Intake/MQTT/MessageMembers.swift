// Turns the payload of an MQTT message into the members of a record.
import Host
import JSON
import MQTT

/// The members of a record made from a message, and the time that the message gives.
struct MessageMembers: Sendable, Equatable {
    /// The members, without braces and without blanks between their parts.
    var members: [UInt8]
    /// The time in the member of the object that holds it.
    var given: WallTime?

    /// Makes members of any payload in UTF-8; throws the reason if there are none.
    ///
    /// A JSON object gives its members, a number or a boolean `value`, and any other text `text`:
    /// also an object that a record cannot be, for example one with a duplicate name. `topic` comes
    /// first, as `mqtt_topic` if the object has a `topic`; then `waited`, if it `hasWaited` at the
    /// broker. Names that the gateway uses itself get `mqtt_` before them.
    ///
    /// `time`: the member that holds the message's time, in RFC 3339 or since 1970; it stays, unless
    /// it is `timestamp`. nil: all members stay, and none is the time.
    init(
        _ message: MQTTMessage,
        time: String? = "timestamp",
        hasWaited: Bool = false
    ) throws(IntakeError) {
        guard String(validating: message.payload, as: UTF8.self) != nil else {
            throw IntakeError("not UTF-8")
        }
        // Programs in C send the NUL behind a text, and others a byte order mark before it.
        var text = message.payload[...]
        while text.last == 0 { text.removeLast() }
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { text.removeFirst(3) }
        let payload = Array(text)
        if let found = try? Self.read(payload, time: time?.lowercased(), message, hasWaited) {
            self = found
        } else {
            let content =
                Self.scalar(payload).map { Self.field("value", $0) }
                ?? Self.field("text", Self.text(String(decoding: message.payload, as: UTF8.self)))
            members = Self.joined(Self.own(message, hasWaited) + [content])
        }
    }

    /// The most bytes that `waited` adds.
    static let waitedBytes = #","mqtt_waited":true"#.utf8.count

    // MARK: Objects

    /// Names that the gateway gives to members of its own, or puts in place of reserved names.
    private static let ownNames = Set(
        ["topic", "mqtt_topic", "waited", "mqtt_waited"]
            + IntakeMembers.reserved.map { "mqtt_\($0)" }
    )

    /// Reads an object; `time` names the member with its time, in small letters.
    ///
    /// Throws if it is not an object, or if the server would refuse the record.
    private static func read(
        _ payload: [UInt8],
        time: String?,
        _ message: MQTTMessage,
        _ hasWaited: Bool
    ) throws(JSONError) -> Self {
        var cursor = IntakeLine.cursor(payload)
        var (found, given, names) = (IntakeMembers(), WallTime?.none, Set<String>())
        try cursor.openObject("an object")
        while let name = try cursor.nextName() {
            var folded = String(decoding: name.text.map(\.asciiLowercased), as: UTF8.self)
            var value: [UInt8] = []
            try cursor.copyValue(to: &value)
            if folded == time, let itsTime = Self.time(value) {
                given = itsTime
                if folded == "timestamp" { continue }
            }
            let isReserved = IntakeMembers.reserved.contains(folded)
            if isReserved { folded = "mqtt_\(folded)" }
            let text = isReserved ? Array(folded.utf8) : name.text
            // Two names may have become one.
            let isTwice = ownNames.contains(folded) && !names.insert(folded).inserted
            if isTwice || found.problem(adding: text) != nil {
                throw cursor.refusal("not a record", name.place)
            }
            found.append(text, isReserved ? Self.text(folded)[...] : name.written, value)
        }
        try cursor.end()
        let own = own(message, hasWaited, beside: names)
        guard found.problem == nil, found.count + own.count <= IntakeMembers.limit else {
            throw cursor.refusal("not a record")
        }
        let members = joined(own + (found.count > 0 ? [found.bytes] : []))
        return Self(members: members, given: given)
    }

    private init(members: [UInt8], given: WallTime?) {
        (self.members, self.given) = (members, given)
    }

    /// Returns `topic` and `waited`, or what they are called beside members with these `names`.
    private static func own(
        _ message: MQTTMessage,
        _ hasWaited: Bool,
        beside names: Set<String> = []
    ) -> [[UInt8]] {
        [("topic", text(message.topic)), ("waited", Array("true".utf8))]
            .prefix(hasWaited ? 2 : 1).compactMap { name, value in
                [name, "mqtt_\(name)"].first { !names.contains($0) }.map { field($0, value) }
            }
    }

    /// Reads a time; nil for one before the release, which is that of a clock that was never set.
    private static func time(_ value: [UInt8]) -> WallTime? {
        var time = try? IntakeLine.given(value)
        if let number = Double(String(decoding: value, as: UTF8.self)) {
            // 1e11 seconds are far in the future, and 1e11 milliseconds were in 1973.
            let milliseconds = number < 1e11 ? number * 1000 : number
            time = Int64(exactly: milliseconds.rounded()).map { WallTime(milliseconds: $0) }
        }
        return time.flatMap { $0 >= .release && IntakeLine.years.contains($0) ? $0 : nil }
    }

    // MARK: Parts

    /// Returns a number or a boolean as JSON; nil for anything else.
    private static func scalar(_ payload: [UInt8]) -> [UInt8]? {
        guard let first = payload.first(where: { !$0.isJSONBlank }),
            first.isDigit || "-tf".utf8.contains(first)
        else { return nil }
        var (cursor, value) = (JSONCursor(payload), [UInt8]())
        do throws(JSONError) {
            try cursor.copyValue(to: &value)
            try cursor.end()
        } catch {
            return nil
        }
        return value
    }

    private static func field(_ name: String, _ value: [UInt8]) -> [UInt8] {
        text(name) + [UInt8(ascii: ":")] + value
    }

    private static func text(_ text: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(text)
        return writer.bytes
    }

    private static func joined(_ members: [[UInt8]]) -> [UInt8] {
        Array(members.joined(separator: [UInt8(ascii: ",")]))
    }
}
