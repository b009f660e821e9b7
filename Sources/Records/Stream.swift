// The streams of records; a server stores each in a separate table.

/// A stream of records: its name, and its number, which is stored and part of each record's id.
///
/// Each built-in stream is declared in its record's file, as `Stream.location` is.
package struct Stream: Sendable, Hashable, CustomStringConvertible {
    /// Built-in streams have numbers below this one.
    package static let builtInEnd = 16
    /// Streams that users declare have this number or a higher one.
    package static let firstOfUser = 64
    /// The largest number that fits into a record's id.
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

/// The description of a stream for the queue, the uploader, the configuration and `status`.
///
/// Table, insertion, reading, JSON, salvage, retention, eviction, upload order and configuration
/// key all follow from it: adding it to the list of kinds completes a stream.
package struct StreamKind: Sendable {
    /// How its records are stored.
    package enum Shape: Sendable {
        /// A row of typed columns.
        case plain([Column])
        /// A row that refers to a beacon.
        case sightings
        /// A chunk that refers to audio segments.
        case sound
    }

    package let stream: Stream
    /// Its name on the wire, unless the configuration sets another.
    package let wire: String
    package let table: String
    package let shape: Shape
    /// Stored bytes of a typical record; large records are uploaded last.
    package let usualBytes: Int64
    /// `status` shows it even before it has a record.
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

    /// Describes a stream of plain records.
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

    /// Its records can be longer than a page of the database.
    package var holdsText: Bool {
        guard case .plain(let columns) = shape else { return false }
        return columns.contains { [.text, .json, .members].contains($0.form) }
    }

    /// Its records are large: uploaded last and read one at a time.
    package var isLarge: Bool { usualBytes > 4096 }
}
