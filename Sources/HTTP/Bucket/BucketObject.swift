// Objects for a bucket: a repeatable body with the digest that the store checks.

/// An object to be stored.
package struct BucketObject {
    package var key: String
    /// Its media type.
    package var type: String
    package var body: RequestBody
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
        body = kept.body ?? RequestBody(length: kept.length, start)
    }
}
