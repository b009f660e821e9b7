// Reads the day of a record from its JSON, which names the folder of its object.

/// A day (UTC) in the form of RFC 3339.
struct RecordDay: Equatable {
    private static let opening = Array(#"{"id":""#.utf8)
    private static let length = 10
    private let text: [UInt8]

    /// Reads the `timestamp` or `timestamp_start` after the id; nil for a record without one.
    init?(_ json: [UInt8]) {
        guard json.starts(with: Self.opening) else { return nil }
        let id = json.dropFirst(Self.opening.count)
        guard let end = id.firstIndex(of: UInt8(ascii: "\"")) else { return nil }
        let rest = json[(end + 1)...]
        for name in [#","timestamp":""#, #","timestamp_start":""#]
        where rest.starts(with: name.utf8) {
            text = Array(rest.dropFirst(name.utf8.count).prefix(Self.length))
            if text.count == Self.length { return }
            return nil
        }
        return nil
    }
}
