// Bodies of requests: pieces of bytes that can be produced again from their start.
import Host

/// Produces one pass over a body: the next piece (never empty) per call, nil at the end.
package typealias PieceSupply = () throws -> [UInt8]?

/// A body of known length that can be produced again from its start.
package final class RequestBody {
    package let length: Int
    private let start: () -> PieceSupply
    private var next: PieceSupply
    private var piece: ArraySlice<UInt8> = []

    /// Creates a body that is produced while it is sent; each call of `start` restarts it.
    package init(length: Int, _ start: @escaping () -> PieceSupply) {
        self.length = length
        self.start = start
        next = start()
    }

    /// Creates a body in memory.
    package convenience init(_ bytes: [UInt8]) {
        self.init(pieces: bytes.isEmpty ? [] : [bytes], length: bytes.count)
    }

    fileprivate convenience init(pieces: [[UInt8]], length: Int) {
        let sum = pieces.reduce(0) { $0 + $1.count }
        mustHold(sum == length, "a body has the length of its pieces")
        self.init(length: length) {
            var rest = pieces.makeIterator()
            return { rest.next() }
        }
    }

    /// Goes back to the start.
    package func rewind() {
        next = start()
        piece = []
    }

    /// The next bytes, at most `limit`; empty at the end.
    package func read(atMost limit: Int) throws -> ArraySlice<UInt8> {
        if piece.isEmpty { piece = try next()?[...] ?? [] }
        let slice = piece.prefix(limit)
        piece = piece.dropFirst(limit)
        return slice
    }
}

/// Collects the pieces of a body while it is small, and its length in any case.
package struct KeptPieces {
    /// A body up to this size is kept in memory; a larger one is produced again while it is sent.
    package static let limit = 1 << 20

    package private(set) var length = 0
    private let bound: Int
    private var pieces: [[UInt8]]? = []

    package init(limit: Int = Self.limit) { bound = limit }

    package mutating func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        length += piece.count
        if length > bound { pieces = nil }
        pieces?.append(piece)
    }

    /// The whole body; nil if it was too large.
    package var body: RequestBody? { pieces.map { RequestBody(pieces: $0, length: length) } }
}
