// A stream of the user, as the configuration declares it: `[stream.weather]`.

/// What other programs may put into the queue under a name (contract, section 8).
package struct UserStream: Sendable, Equatable {
    /// As programs name it.
    package var name: String
    /// On the wire.
    package var wire: String
    /// Records a second.
    package var maxRate = 100.0
    /// Of a record's JSON object, without blanks between its parts.
    package var maxRecordBytes = 16_000

    package init(name: String) {
        self.name = name
        wire = name
    }

    /// As many as may be declared.
    package static let limit = 32

    /// The part of the file that declares them.
    static let section = "stream"

    /// The gateway's own streams: those that have a name on the wire in `[streams]`.
    static let taken = KeyTable.all.keys.filter { $0.section == "streams" }.map(\.name)

    static let allowedName = "1 to 32 of the characters a-z 0-9 _"

    /// Why a name is none for a stream; nil where it is one.
    package static func problem(withName name: String) -> String? {
        if taken.contains(name) { return "\(name) is a stream of the gateway's own" }
        let isSafe = name.utf8.allSatisfy { (97...122).contains($0) || $0.isDigit || $0 == 95 }
        guard (1...32).contains(name.utf8.count), isSafe else {
            return "\"\(printable(name))\" is no name for a stream"
        }
        return nil
    }
}
