// A record's JSON, taken apart into its members.
import Host
import JSON

/// The members of a record in order; values as they are written.
struct RecordMembers {
    private(set) var all: [(name: String, value: [UInt8])] = []

    /// Empty for what is no object.
    init(_ json: [UInt8]) {
        var cursor = JSONCursor(json)
        do throws(JSONFault) {
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

    /// As it is written; nil where it is not there.
    subscript(name: String) -> String? {
        all.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// A text as it reads; anything else as it is written.
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
