// Objects for a bucket: a repeatable body with the digest that the store checks.

/// Produces one pass over an object: the next piece (never empty) per call, nil at the end.
package typealias PieceSupply = () throws -> [UInt8]?

/// An object to be stored.
package struct BucketObject {
    package var key: String
    /// Its media type.
    package var type: String
    package var body: any RequestBody
    /// SHA-256 in hex.
    package var digest: String

    /// Produces the object once to measure it; each call of `start` restarts the same bytes.
    ///
    /// `keeps`: the most bytes kept in memory; a larger object is produced again while it is sent.
    package init(
        key: String,
        type: String,
        keeps limit: Int = KeptPieces.limit,
        _ start: @escaping () -> PieceSupply
    ) throws {
        var kept = KeptPieces(limit: limit)
        var digest = try SHA256()
        let next = start()
        while let piece = try next() {
            try digest.append(piece)
            kept.append(piece)
        }
        self.key = key
        self.type = type
        self.digest = try digest.finish()
        body = kept.body ?? ProducedBody(length: kept.length, start)
    }
}

/// A body produced while it is sent, in constant memory.
private final class ProducedBody: RequestBody {
    let length: Int
    private let start: () -> PieceSupply
    private var next: PieceSupply
    private var piece: ArraySlice<UInt8> = []

    init(length: Int, _ start: @escaping () -> PieceSupply) {
        self.length = length
        self.start = start
        next = start()
    }

    func rewind() {
        next = start()
        piece = []
    }

    func read(atMost limit: Int) throws -> ArraySlice<UInt8> {
        if piece.isEmpty { piece = try next()?[...] ?? [] }
        let slice = piece.prefix(limit)
        piece = piece.dropFirst(limit)
        return slice
    }
}
