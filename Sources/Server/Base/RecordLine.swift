// Reads the members of a record, in a request body or in a line of a file.
import Host

/// The members of a record, or of an object in it, in order; valid as long as its bytes.
package struct RecordLine {
    package struct Member {
        /// Nil if it is too long to read.
        package var name: String?
        /// The name with its quotes.
        package var key: Range<Int>
        package var value: Range<Int>
    }

    package enum Value {
        /// A number as written; only the beginning of a long one.
        case number(String)
        case text(String)
        case flag(Bool)
        /// Null, the beginning of an array or object, or … for a string that is too long to read.
        case other(String)

        /// Nil if it is not a number, not finite, or too long.
        package var number: Double? {
            guard case .number(let text) = self, text.utf8.count <= longestNumber,
                let number = Double(text), number.isFinite
            else { return nil }
            return number
        }

        package var text: String? { if case .text(let text) = self { text } else { nil } }

        package var flag: Bool? { if case .flag(let flag) = self { flag } else { nil } }
    }

    /// An event of a source, and the range of its `detail`, an object.
    package struct Event {
        package var kind: String
        package var source: String
        package var detail: Range<Int>
    }

    /// Events that report a source's state for the page.
    package static let stateKinds: Set<String> = [
        "source_lost", "source_recovered", "started", "stopped", "storage_low",
    ]
    /// Characters of an event's names that are stored, because a page has many.
    private static let longestName = 100
    /// Bytes.
    private static let longestNumber = 40
    private static let longestRaw = 300

    package let bytes: ByteView
    package let extent: Range<Int>
    package let members: [Member]

    /// Reads the next object; throws `BodyError` if it is not valid JSON.
    ///
    /// Reads no more members than a record may have, so its memory is bounded.
    package init(_ text: inout BodyJSON) throws {
        var members: [Member] = []
        members.reserveCapacity(16)
        _ = text.next()
        let start = text.position
        try text.object { text, key in
            let value = try text.value()
            // One more, for the mark that the archive appends.
            guard members.count <= MemberNames.maximum else { return }
            members.append(Member(name: JSONString.read(text.bytes, key), key: key, value: value))
        }
        (bytes, extent, self.members) = (text.bytes, start..<text.position, members)
    }

    /// Nil if the line is not a JSON object.
    package init?(_ line: ByteView) {
        var text = BodyJSON(line)
        guard let record = try? RecordLine(&text), (try? text.end()) != nil else { return nil }
        self = record
    }

    // MARK: Members; of equal names the last counts

    package subscript(name: String) -> Range<Int>? { members.last { $0.name == name }?.value }

    /// Nil if it is missing, not a string, or too long to read.
    package func text(_ name: String) -> String? {
        self[name].flatMap { begins($0, "\"") ? JSONString.read(bytes, $0) : nil }
    }

    package func number(_ name: String) -> Double? { self[name].flatMap { value($0).number } }

    /// Nil if it is missing, or not a whole number of at most 19 characters.
    package func integer(_ name: String) -> Int64? {
        self[name].flatMap { $0.count < 20 ? Int64(raw($0)) : nil }
    }

    /// Milliseconds since 1970; nil if the member is not a timestamp.
    package func time(_ name: String) -> Int64? {
        text(name).flatMap { WallTime(rfc3339: $0) }?.milliseconds
    }

    /// The members of a value that is an object.
    package func object(_ range: Range<Int>) -> RecordLine? {
        guard begins(range, "{") else { return nil }
        var text = BodyJSON(bytes, at: range.lowerBound)
        return try? RecordLine(&text)
    }

    package func value(_ range: Range<Int>) -> Value {
        switch bytes[range.lowerBound] {
        case UInt8(ascii: "\""): JSONString.read(bytes, range).map(Value.text) ?? .other("…")
        case UInt8(ascii: "t"): .flag(true)
        case UInt8(ascii: "f"): .flag(false)
        case UInt8(ascii: "n"), UInt8(ascii: "["), UInt8(ascii: "{"):
            .other(raw(range.prefix(Self.longestRaw)))
        default: .number(raw(range.prefix(Self.longestRaw)))
        }
    }

    /// Returns whether a value is of the kind that begins with this character.
    package func begins(_ value: Range<Int>, _ first: Unicode.Scalar) -> Bool {
        bytes[value.lowerBound] == UInt8(ascii: first)
    }

    package func raw(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }

    // MARK: Members of all records

    /// The member with the time.
    private var timeName: String { self["timestamp"] == nil ? "timestamp_start" : "timestamp" }

    /// The time as written.
    package var writtenTime: String? { text(timeName) }

    /// The id, and milliseconds since 1970; nil if it is not a record, which no archive stores.
    package var identity: (id: String, time: Int64)? {
        guard let id = text("id"), isName(id), let time = time(timeName) else { return nil }
        return (id, time)
    }

    /// True if the server marked it as dated more than a day ahead.
    package var isAhead: Bool { text("clock") == "future" }

    /// Nil if it is not an event.
    package var event: Event? {
        guard let detail = self["detail"], begins(detail, "{"), let kind = text("kind"),
            let source = text("source"), !kind.isEmpty, !source.isEmpty
        else { return nil }
        return Event(kind: Self.shortened(kind), source: Self.shortened(source), detail: detail)
    }

    private static func shortened(_ name: String) -> String {
        name.utf8.count <= longestName
            ? name : String(String.UnicodeScalarView(name.unicodeScalars.prefix(longestName)))
    }
}

extension RecordLine {
    /// False if nothing says that the record's times are right.
    ///
    /// A clock that was never set may begin in 1970, or where the last run ended, days ago.
    package var isDated: Bool { text("clock") != "unsynced" }
}
