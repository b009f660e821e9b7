// The kinds of request body: short ones from memory, a long one straight from the database.

/// A body of known length that can be produced again from its start.
package protocol RequestBody: AnyObject {
    var length: Int { get }
    /// Goes back to the start.
    func rewind()
    /// The next bytes, at most `limit`; empty at the end.
    func read(atMost limit: Int) throws -> ArraySlice<UInt8>
}

/// A body that is all there.
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

/// A body that is all there, in pieces as they were made.
final class PiecesBody: RequestBody {
    let length: Int
    private let pieces: [[UInt8]]
    private var next = 0
    private var piece: ArraySlice<UInt8> = []

    init(_ pieces: [[UInt8]], length: Int) {
        self.pieces = pieces
        self.length = length
    }

    func rewind() {
        next = 0
        piece = []
    }

    func read(atMost limit: Int) -> ArraySlice<UInt8> {
        if piece.isEmpty, next < pieces.count {
            piece = pieces[next][...]
            next += 1
        }
        let slice = piece.prefix(limit)
        piece = piece.dropFirst(limit)
        return slice
    }
}

/// A batch's body, produced as it is sent: memory does not grow with the batch.
final class StreamedBody: RequestBody {
    let length: Int
    private let body: BatchBody
    private var pieces: BatchBody.Pieces
    private var piece: ArraySlice<UInt8> = []

    init(_ body: BatchBody, length: Int) {
        self.body = body
        self.length = length
        pieces = body.pieces()
    }

    func rewind() {
        pieces = body.pieces()
        piece = []
    }

    func read(atMost limit: Int) throws -> ArraySlice<UInt8> {
        if piece.isEmpty { piece = try pieces.next()?[...] ?? [] }
        let slice = piece.prefix(limit)
        piece = piece.dropFirst(limit)
        return slice
    }
}
