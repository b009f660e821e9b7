// The list of all streams.

/// The streams that a queue has, in the order in which they are uploaded.
package struct StreamList: Sendable {
    /// Small streams first: sound must not keep a position waiting.
    package static let builtIn = [Event.kind, Survey.kind, Fix.kind, Sighting.kind, Chunk.kind]

    package private(set) var kinds: [StreamKind]

    /// `more`: other kinds; they are uploaded before the large ones.
    package init(with more: [StreamKind] = []) {
        kinds = Self.builtIn.filter { !$0.isLarge } + more + Self.builtIn.filter(\.isLarge)
    }

    package var streams: [Stream] { kinds.map(\.stream) }

    /// The kind of a stream; nil for one that is not in the list.
    package subscript(stream: Stream) -> StreamKind? { kinds.first { $0.stream == stream } }

    package subscript(number number: Int) -> StreamKind? {
        kinds.first { $0.stream.number == number }
    }

    package subscript(name name: String) -> StreamKind? {
        kinds.first { $0.stream.name == name }
    }
}
