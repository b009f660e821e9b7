// The day that a record is of, as its JSON says it: the folder of an object says the same.

/// A day (UTC) as RFC 3339 writes it.
struct RecordDay: Equatable {
    private static let opening = Array(#"{"id":""#.utf8)
    private static let length = 10
    private let text: [UInt8]

    /// Reads the `timestamp` or `timestamp_start` that stands behind the id; nil for a record without.
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
