// Records from other programs (waypost-protocol(7), THE INTAKE SOCKET).
package import Host

/// A record received on the intake socket.
package struct UserRecord: Sendable, Equatable {
    /// The declared name of its stream.
    package var stream: String
    /// When it was accepted.
    package var stamp: Stamp
    /// The time that the sending program gave, if any.
    package var given: WallTime?
    /// The members of its JSON object as received, without the braces and the reserved names.
    package var members: [UInt8]

    package init(stream: String, stamp: Stamp, given: WallTime? = nil, members: [UInt8]) {
        self.stream = stream
        self.stamp = stamp
        self.given = given
        self.members = members
    }
}

extension StreamKind {
    /// Describes a stream that the user has declared.
    package static func user(_ number: Int, _ name: String, wire: String) -> Self {
        Self(
            Stream(number, name),
            wire: wire,
            table: "user_\(number)",
            columns: [.hidden("given", .given), .members("data")]
        )
    }

    package var isOfUser: Bool { stream.number >= Stream.firstOfUser }
}

extension PlainRow {
    package init(_ record: UserRecord, _ stream: Stream) {
        let given = record.given.map { ColumnValue.integer($0.milliseconds) } ?? .none
        self.init(stream, record.stamp, [given, .bytes(record.members)])
    }
}
