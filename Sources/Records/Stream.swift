// The streams of records that a server receives, each a table of its own.

/// A stream of records: its number, which is stored and part of each record's id, and its name.
///
/// Each stream declares its own in its file, as `Stream.location` does.
package struct Stream: Sendable, Hashable, CustomStringConvertible {
    /// Streams that are built in have numbers below this one.
    package static let firstOfUser = 64
    /// The most that a record's id has room for.
    package static let last = 1023

    package let number: Int
    package let name: String

    package init(_ number: Int, _ name: String) {
        self.number = number
        self.name = name
    }

    package var description: String { name }

    package static func == (left: Self, right: Self) -> Bool { left.number == right.number }

    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// What the queue, the uploader, the configuration and `status` need to know of a stream.
///
/// Table, insertion, reading, JSON, salvage, retention, eviction, order of upload and configuration key follow
/// from it: a stream that is in the list of kinds is complete.
package struct StreamKind: Sendable {
    /// How its records are stored.
    package enum Shape: Sendable {
        /// A row of typed columns.
        case plain([Column])
        /// A row that refers to a beacon.
        case sightings
        /// A chunk that refers to segments of sound.
        case sound
    }

    package let stream: Stream
    /// Its name on the wire, unless the configuration gives another.
    package let wire: String
    package let table: String
    package let shape: Shape
    /// Stored bytes of a usual record: large records are uploaded last.
    package let usualBytes: Int64
    /// `status` shows it before it has a record.
    package let isAlwaysShown: Bool

    package init(
        _ stream: Stream,
        wire: String,
        table: String? = nil,
        shape: Shape,
        usualBytes: Int64 = 64,
        isAlwaysShown: Bool = true
    ) {
        self.stream = stream
        self.wire = wire
        self.table = table ?? stream.name
        self.shape = shape
        self.usualBytes = usualBytes
        self.isAlwaysShown = isAlwaysShown
    }

    /// A stream of plain records.
    package init(
        _ stream: Stream,
        wire: String,
        table: String? = nil,
        columns: [Column],
        isAlwaysShown: Bool = true
    ) {
        self.init(
            stream,
            wire: wire,
            table: table,
            shape: .plain(columns),
            isAlwaysShown: isAlwaysShown
        )
    }

    /// Its records may be longer than a page of the database.
    package var holdsText: Bool {
        guard case .plain(let columns) = shape else { return false }
        return columns.contains { [.text, .json, .members].contains($0.form) }
    }

    /// Its records are large, so they are uploaded last and read one at a time.
    package var isLarge: Bool { usualBytes > 4096 }
}
