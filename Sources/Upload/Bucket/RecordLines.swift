// The records of a batch as lines of JSON.
import HTTP
import Queue
import Records

/// One pass over a batch's records, one JSON object per line, compressed.
final class RecordLines {
    /// Records per piece.
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

    /// Returns the next piece (never empty), or nil at the end.
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
