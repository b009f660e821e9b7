// The streams of records that a server receives, each a table of its own.

/// A stream of records; the raw value is its number in the database and in record ids.
package enum Stream: Int, Sendable, CaseIterable {
    case location = 1
    case audio = 2
    case beacons = 3
    case events = 4
    case surveys = 5
}

/// A value for each stream, found without hashing: it is looked up for every record.
struct PerStream<Value> {
    /// By the stream's number; 0 is no stream.
    private var values = [Value?](repeating: nil, count: Stream.allCases.count + 1)

    subscript(stream: Stream) -> Value? {
        get { values[stream.rawValue] }
        set { values[stream.rawValue] = newValue }
    }
}
