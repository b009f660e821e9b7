// Request bodies in memory, and the protocol they share with streamed ones.

/// A body of known length that can be produced again from its start.
package protocol RequestBody: AnyObject {
    var length: Int { get }
    /// Goes back to the start.
    func rewind()
    /// The next bytes, at most `limit`; empty at the end.
    func read(atMost limit: Int) throws -> ArraySlice<UInt8>
}

/// A body in one piece in memory.
package final class MemoryBody: RequestBody {
    private let bytes: [UInt8]
    private var position = 0

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    package var length: Int { bytes.count }

    package func rewind() { position = 0 }

    package func read(atMost limit: Int) -> ArraySlice<UInt8> {
        let slice = bytes[position..<min(bytes.count, position + limit)]
        position = slice.endIndex
        return slice
    }
}

/// A body in memory, in the pieces in which it was produced.
package final class PiecesBody: RequestBody {
    package let length: Int
    private let pieces: [[UInt8]]
    private var next = 0
    private var piece: ArraySlice<UInt8> = []

    init(_ pieces: [[UInt8]], length: Int) {
        self.pieces = pieces
        self.length = length
    }

    package func rewind() {
        next = 0
        piece = []
    }

    package func read(atMost limit: Int) -> ArraySlice<UInt8> {
        if piece.isEmpty, next < pieces.count {
            piece = pieces[next][...]
            next += 1
        }
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
    package var body: PiecesBody? { pieces.map { PiecesBody($0, length: length) } }
}
