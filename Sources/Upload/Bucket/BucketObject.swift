// What is stored in a bucket: a body that can be produced again, with the digest that the store checks.
internal import Queue
internal import Streams

/// Gives one pass over an object: the next piece (never empty) at each call, nil at the end.
typealias PieceSupply = () throws -> [UInt8]?

/// An object that is to be stored.
struct BucketObject {
    var key: String
    /// Its media type.
    var type: String
    var body: any RequestBody
    /// SHA-256 in hex.
    var digest: String

    /// Produces the object once to measure it; `start` begins the same bytes anew.
    init(key: String, type: String, _ start: @escaping () -> PieceSupply) throws {
        var kept = KeptPieces()
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

/// A body that is produced as it is sent: memory does not grow with it.
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

/// One pass over a batch's records, a JSON object a line, compressed.
final class RecordLines {
    /// Records in a piece.
    private static let pageSize: Int64 = 256

    private let batch: Batch
    private let source: RecordSource
    private var compressor: PieceCompressor
    private var position: Int64
    private var isDone = false

    init(_ batch: Batch, of source: RecordSource, _ compression: Compression) {
        self.batch = batch
        self.source = source
        compressor = PieceCompressor(compression)
        position = batch.first
    }

    /// The next piece (never empty), or nil at the end.
    func next() throws -> [UInt8]? {
        while !isDone {
            let page = try page()
            let bytes = try compressor.take(page, isLast: isDone)
            if !bytes.isEmpty { return bytes }
        }
        return nil
    }

    private func page() throws -> [UInt8] {
        guard position <= batch.last else {
            isDone = true
            return []
        }
        let page = position...min(batch.last, position + Self.pageSize - 1)
        position = page.upperBound + 1
        var lines: [UInt8] = []
        try source.forEach(batch.stream, page) { _, json in
            lines.append(contentsOf: json)
            lines.append(UInt8(ascii: "\n"))
            return true
        }
        return lines
    }
}
