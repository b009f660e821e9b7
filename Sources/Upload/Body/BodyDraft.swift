// The body of a batch that is not frozen yet, made while counting the records that fit.
import Host
package import HTTP
package import Queue
import Records

/// Reads a pending range once: finds the last record that fits and compresses the body on the way.
///
/// The body equals the one `BatchBody` makes of the batch, byte for byte, so a retry after a crash
/// sends the same bytes.
package final class BodyDraft {
    private let range: PendingRange
    private let limit: Int
    private let envelope: Envelope
    private var compressor: PieceCompressor
    /// Another reader may be of another database, which has other records under the same numbers.
    package let reader: Reader
    private let source: RecordSource
    /// The records so far, if the body is one of columns.
    private var table = ColumnTable()
    private var kept = KeptPieces()
    /// Bytes of the body made so far, before compression.
    package private(set) var plainLength = 0
    /// The last record that still fits; the range always has at least one.
    package private(set) var last: Int64
    /// Bytes of the complete body, before compression.
    private var size = Envelope.room
    /// The first record of the next piece.
    private var position: Int64
    private var isMade = false

    /// Reads up to `limit` bytes of rows before compression; throws read and compression errors, and
    /// `ColumnTable.UnfitRowError` if the range's form is columns and they cannot carry a record.
    ///
    /// `isMade` false leaves the work to `advance`.
    package init(
        _ range: PendingRange,
        limit: Int,
        envelope: Envelope,
        compression: Compression,
        reader: Reader,
        isMade: Bool = true
    ) throws {
        self.range = range
        self.limit = limit
        self.envelope = envelope
        self.reader = reader
        compressor = PieceCompressor(compression, .init(range.stream, range.form ?? .rows))
        (last, position) = (range.first, range.first)
        source = try RecordSource(reader: reader, clockMap: range.clockMap)
        try keep(envelope.opening(form))
        if range.stream == .audio {
            try fillWithAudio()
        } else if isMade {
            while try advance() {}
        }
    }

    package var form: Batch.Form { range.form ?? .rows }

    /// Adds audio records: the first in pieces, whatever its length, later ones once they are known
    /// to fit.
    private func fillWithAudio() throws {
        isMade = true
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
            // Use the same pieces as every retry: the compressed bytes may depend on them.
            for piece in pieces { try keep(piece) }
            last = sequence
        }
    }

    /// Makes one more piece; returns false when the body is complete.
    func advance() throws -> Bool {
        guard !isMade else { return false }
        // Use the same pieces as every retry: the compressed bytes may depend on them.
        let piece = position...min(range.last, position + BatchBody.pageSize - 1)
        position = piece.upperBound + 1
        isMade = position > range.last
        var bytes: [UInt8] = []
        // A table is in memory until the body is complete.
        let limit = form == .columns ? min(limit, ColumnTable.largest) : limit
        try source.forEach(range.stream, piece) { sequence, json in
            size += json.count + 1
            guard size <= limit || sequence == range.first else {
                isMade = true
                return false
            }
            if form == .columns {
                try table.append(json)
            } else {
                if sequence > range.first { bytes.append(UInt8(ascii: ",")) }
                bytes.append(contentsOf: json)
            }
            last = sequence
            return true
        }
        if !bytes.isEmpty { try keep(bytes) }
        return !isMade
    }

    private func keep(_ plain: [UInt8], isLast: Bool = false) throws {
        plainLength += plain.count
        kept.append(try compressor.receive(plain, isLast: isLast))
    }

    /// Returns whether this draft was made for these arguments.
    func isOf(
        _ range: PendingRange,
        limit: Int,
        _ compression: Compression,
        _ reader: Reader
    ) -> Bool {
        range == self.range && limit == self.limit && compression == compressor.compression
            && reader === self.reader
    }

    /// Returns an empty draft for the records that did not fit; nil if all did.
    ///
    /// Always nil for audio: it is large and limited by the network, not by the processor.
    func next(_ compression: Compression) throws -> BodyDraft? {
        mustHold(range.first <= last && last <= range.last, "a body holds records of its range")
        guard last < range.last, range.stream != .audio else { return nil }
        var rest = range
        rest.first = last + 1
        return try BodyDraft(
            rest,
            limit: limit,
            envelope: envelope,
            compression: compression,
            reader: reader,
            isMade: false
        )
    }

    /// Returns the body of the batch frozen from this draft; nil for another batch or compression.
    ///
    /// Call it once: it finishes the compressor.
    package func body(of batch: Batch, _ compression: Compression) throws -> RequestBody? {
        guard batch.partition == range.partition, batch.first == range.first, batch.last == last,
            batch.clockMap == range.clockMap, batch.form == form,
            compression == compressor.compression
        else { return nil }
        if form == .columns {
            mustHold(table.count == batch.records, "a table has the records of its batch")
            try keep(table.json())
        }
        try keep(envelope.closing(batch), isLast: true)
        let again = BatchBody(
            batch: batch,
            envelope: envelope,
            compression: compression,
            source: source
        )
        return kept.body ?? RequestBody(length: kept.length, again.pieces)
    }
}
