// The list of all streams.

/// The streams of a queue, in upload order.
package struct StreamList: Sendable {
    /// Small streams first: audio must not delay a fix.
    package static let builtIn = [
        Event.kind, DeviceHealth.kind, JobReply.kind, Effort.kind, Survey.kind, Fix.kind,
        Sighting.kind,
        Chunk.kind,
    ]

    package private(set) var kinds: [StreamKind]

    /// Adds other kinds before the large ones.
    package init(with more: [StreamKind] = []) {
        kinds = Self.builtIn.filter { !$0.isLarge } + more + Self.builtIn.filter(\.isLarge)
        // Every test that has a queue comes here, so a number that is in use is found at once.
        assert(
            Set(streams).count == kinds.count
                && Self.builtIn.allSatisfy { $0.stream.number < Stream.builtInEnd },
            "two streams have one number, or a built-in stream has \(Stream.builtInEnd) or above"
        )
    }

    package var streams: [Stream] { kinds.map(\.stream) }

    /// Returns the kind of a stream; nil if it is not in the list.
    package subscript(stream: Stream) -> StreamKind? { kinds.first { $0.stream == stream } }

    package subscript(number number: Int) -> StreamKind? {
        kinds.first { $0.stream.number == number }
    }

    package subscript(name name: String) -> StreamKind? {
        kinds.first { $0.stream.name == name }
    }
}
