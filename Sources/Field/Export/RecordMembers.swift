// Splits a record's JSON into its members.
import Host
import JSON

/// The members of a record in order, with raw JSON values.
struct RecordMembers {
    private(set) var all: [(name: String, value: [UInt8])] = []

    /// Parses a record; empty if it is not an object.
    init(_ json: [UInt8]) {
        var cursor = JSONCursor(json)
        do throws(JSONError) {
            try cursor.openObject("a record")
            while let name = try cursor.nextName() {
                var value: [UInt8] = []
                try cursor.copyValue(to: &value)
                all.append((String(decoding: name.text, as: UTF8.self), value))
            }
        } catch {
            all = []
        }
    }

    /// The members, with those of objects under names such as `telemetry.temperature_c`.
    ///
    /// An empty object, a list and any other value is one member.
    var flat: [(name: String, value: [UInt8])] {
        all.flatMap { name, value in
            let inner = value.first == UInt8(ascii: "{") ? Self(value).flat : []
            return inner.isEmpty ? [(name, value)] : inner.map { ("\(name).\($0.name)", $0.value) }
        }
    }

    /// The raw JSON of a member; nil if missing.
    subscript(name: String) -> String? {
        all.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Returns a string decoded, any other value as raw JSON; nil if missing.
    func text(_ name: String) -> String? {
        all.first { $0.name == name }.map { Self.text($0.value) }
    }

    static func text(_ value: [UInt8]) -> String {
        var cursor = JSONCursor(value)
        if value.first == UInt8(ascii: "\""), let text = try? cursor.text("a text") {
            return String(decoding: text, as: UTF8.self)
        }
        return String(decoding: value, as: UTF8.self)
    }
}
