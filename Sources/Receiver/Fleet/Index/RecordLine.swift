// A record of an archive's file as the index needs it.
import Host

/// A record, recognised by its members, whatever its stream is called.
struct RecordLine {
    struct Event {
        var kind: String
        var source: String
        /// The range of the object `detail`.
        var detail: Range<Int>
    }

    /// Events that report a source's state for the page.
    static let stateKinds: Set<String> = [
        "source_lost", "source_recovered", "started", "stopped", "storage_low",
    ]
    /// Characters of a name that are stored, because a page has many names.
    private static let longestName = 100

    private(set) var id = ""
    /// Milliseconds since 1970.
    private(set) var time: Int64 = 0
    private(set) var event: Event?
    /// True if the server marked it as dated more than a day ahead.
    private(set) var isAhead = false

    /// Nil if the line is not a record, which the archive never writes.
    init?(_ line: ByteView) {
        var fields = LineFields()
        do {
            var text = BodyJSON(line)
            try text.object { try fields.take(&$0, $1) }
            try text.end()
        } catch {
            return nil
        }
        guard isName(fields.id),
            let time = WallTime(rfc3339: fields.timestamp ?? fields.start ?? "")
        else { return nil }
        id = fields.id
        self.time = time.milliseconds
        isAhead = fields.clock == "future"
        if let detail = fields.detail, !fields.kind.isEmpty, !fields.source.isEmpty {
            event = Event(
                kind: Self.shortened(fields.kind),
                source: Self.shortened(fields.source),
                detail: detail
            )
        }
    }

    /// Returns the beginning of a name that is too long for a page.
    static func shortened(_ name: String) -> String {
        name.utf8.count <= longestName
            ? name : String(String.UnicodeScalarView(name.unicodeScalars.prefix(longestName)))
    }

    /// Returns the member `records` of an event's detail; nil if it is missing or not positive.
    static func count(_ line: ByteView, _ detail: Range<Int>) -> Int64? {
        var count: Int64?
        var text = BodyJSON(line, at: detail.lowerBound)
        try? text.object { text, name in
            let value = try text.value()
            guard value.count < 20, JSONString.read(line, name) == "records" else { return }
            count = Int64(String(decoding: line[value], as: UTF8.self))
        }
        return count.flatMap { $0 > 0 ? $0 : nil }
    }
}

/// The members that the index reads; of equal names the last counts.
private struct LineFields {
    var id = ""
    var timestamp: String?
    var start: String?
    var kind = ""
    var source = ""
    var clock = ""
    var detail: Range<Int>?

    mutating func take(_ text: inout BodyJSON, _ name: Range<Int>) throws {
        let first = text.next()
        let value = try text.value()
        func string() -> String {
            first == UInt8(ascii: "\"") ? JSONString.read(text.bytes, value) ?? "" : ""
        }
        switch JSONString.read(text.bytes, name) {
        case "id": id = string()
        case "timestamp": timestamp = string()
        case "timestamp_start": start = string()
        case "kind": kind = string()
        case "source": source = string()
        case "clock": clock = string()
        case "detail": detail = first == UInt8(ascii: "{") ? value : nil
        default: break
        }
    }
}
