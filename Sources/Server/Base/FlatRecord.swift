// A record or an event's detail as names and values, for people.

/// The members of a JSON object in order; nested objects are flattened one level: `detail.reason`.
package struct FlatRecord {
    private static let maxMembers = 200

    package private(set) var members: [(name: String, value: RecordLine.Value)] = []

    /// Empty if the text is not an object.
    package init(_ json: String) {
        Array(json.utf8).withUnsafeBytes { bytes in
            if let line = RecordLine(ByteView(bytes, isMapped: false)) { self = FlatRecord(line) }
        }
    }

    package init(_ line: RecordLine) {
        for member in line.members {
            let name = member.name ?? ""
            guard let inner = line.object(member.value) else {
                members.append((name, line.value(member.value)))
                continue
            }
            members += inner.members.map {
                ("\(name).\($0.name ?? "")", inner.value($0.value))
            }
        }
        members = Array(members.prefix(Self.maxMembers))
    }

    package func number(_ name: String) -> Double? { self[name]?.number }

    package func text(_ name: String) -> String? { self[name]?.text }

    package func flag(_ name: String) -> Bool? { self[name]?.flag }

    private subscript(name: String) -> RecordLine.Value? {
        members.last { $0.name == name }?.value
    }
}

extension RecordLine.Value {
    private static let longest = 300

    package var isNumber: Bool {
        if case .number = self { true } else { false }
    }

    package var words: String {
        switch self {
        case .number(let text), .text(let text), .other(let text):
            String(text.prefix(Self.longest))
        case .flag(let flag): flag ? "yes" : "no"
        }
    }
}
