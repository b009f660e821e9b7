// The body of a batch that is not frozen yet: made once, while it is found out how much fits.
internal import Host
package import Queue
package import Requests
internal import Streams

/// Goes through a pending range once: finds the last record that fits, and compresses the body on the way.
///
/// The body is what `BatchBody` makes of the batch, byte for byte, so a retry after a crash is the same.
package final class BodyDraft {
    private let range: PendingRange
    private let envelope: Envelope
    private var compressor: PieceCompressor
    private let source: RecordSource
    private var kept = KeptPieces()
    /// Bytes of what it has made of the body so far, before compression.
    package private(set) var plainLength = 0
    /// The last record that still fits; always at least one.
    package private(set) var last: Int64

    /// Reads up to `limit` bytes of body before compression; throws what reading or compressing does.
    package init(
        _ range: PendingRange,
        limit: Int,
        envelope: Envelope,
        compression: Compression,
        reader: Reader
    ) throws {
        self.range = range
        self.envelope = envelope
        compressor = PieceCompressor(compression, isSound: range.stream == .audio)
        last = range.first
        source = try RecordSource(reader: reader, clockMap: range.clockMap)
        try keep(envelope.opening())
        if range.stream == .audio { try fillWithSound(limit) } else { try fill(limit) }
    }

    /// The first record goes through in pieces, whatever its length; those of others wait until it is known that they fit.
    private func fillWithSound(_ limit: Int) throws {
        var size = Envelope.room
        for sequence in range.first...range.last {
            let record = try source.soundRecord(sequence)
            var pieces: [[UInt8]] = []
            size += 1
            while var piece = try record.next() {
                size += piece.count
                guard sequence > range.first else {
                    try keep(piece)
                    continue
                }
                guard size <= limit else { return }
                if pieces.isEmpty { piece.insert(UInt8(ascii: ","), at: 0) }
                pieces.append(piece)
            }
            // In the same pieces as at each later try: the compressed bytes may depend on them.
            for piece in pieces { try keep(piece) }
            last = sequence
        }
    }

    private func fill(_ limit: Int) throws {
        let step = BatchBody.pageSize
        var size = Envelope.room
        var page: [UInt8] = []
        try source.forEach(range.stream, range.first...range.last) { sequence, json in
            size += json.count + 1
            guard size <= limit || sequence == range.first else { return false }
            // In the same pieces as at each later try: the compressed bytes may depend on them.
            if sequence > range.first, (sequence - range.first) % step == 0 {
                try keep(page)
                page.removeAll(keepingCapacity: true)
            }
            if sequence > range.first { page.append(UInt8(ascii: ",")) }
            page.append(contentsOf: json)
            last = sequence
            return true
        }
        try keep(page)
    }

    private func keep(_ plain: [UInt8], isLast: Bool = false) throws {
        plainLength += plain.count
        kept.append(try compressor.take(plain, isLast: isLast))
    }

    /// The body of the batch that was frozen from it; nil for any other batch, or another compression.
    ///
    /// To be called once: it ends the compressor.
    package func body(of batch: Batch, _ compression: Compression) throws -> (any RequestBody)? {
        guard batch.partition == range.partition, batch.first == range.first, batch.last == last,
            batch.clockMap == range.clockMap, compression == compressor.compression
        else { return nil }
        try keep(envelope.closing(batch), isLast: true)
        return kept.body
            ?? StreamedBody(
                BatchBody(
                    batch: batch,
                    envelope: envelope,
                    compression: compression,
                    source: source
                ),
                length: kept.length
            )
    }
}
