// A value per stream, found without hashing because every record looks it up.
import Records

/// A value for each live stream.
struct PerStream<Value> {
    private var values: [Value?] = []

    subscript(stream: Stream) -> Value? {
        get {
            let place = Self.place(stream)
            return place < values.count ? values[place] : nil
        }
        _modify {
            let place = Self.place(stream)
            while values.count <= place { values.append(nil) }
            yield &values[place]
        }
    }

    func forEach(_ body: (Value) -> Void) { for case let value? in values { body(value) } }

    /// User streams follow the built-in ones.
    private static func place(_ stream: Stream) -> Int {
        guard stream.number >= Stream.firstOfUser else { return stream.number }
        return stream.number - Stream.firstOfUser + Stream.builtInEnd
    }
}

extension PerStream: Sendable where Value: Sendable {}
