// The body of a batch: the same bytes each time it is produced.
import Host
package import HTTP
import JSON
package import Queue
import Records

/// The JSON before and after the records of a body.
package struct Envelope: Sendable {
    /// An upper limit of its size in bytes, with names and metadata.
    static let room = 1024

    private let streamName: String
    private let deviceID: String

    package init(streamName: String, deviceID: String) {
        self.streamName = streamName
        self.deviceID = deviceID
    }

    func opening(_ form: Batch.Form) -> [UInt8] {
        var json = JSONWriter()
        json.field("stream_name", streamName)
        json.field("device_id", deviceID)
        let data = form == .columns ? #","columns":"# : #","data":["#
        return Array("{".utf8) + json.bytes + Array(data.utf8)
    }

    func closing(_ batch: Batch) -> [UInt8] {
        var json = JSONWriter()
        json.object {
            $0.field("total_records", Int64(batch.records))
            $0.field("app_version", batch.appVersion)
            $0.field("batch_id", batch.key)
            $0.field("first_sequence", batch.first)
            $0.field("last_sequence", batch.last)
            $0.field("sent_at", batch.sentAt)
            $0.field("clock", batch.synced ? "synced" : "unsynced")
        }
        let end = batch.form == .columns ? "" : "]"
        return Array("\(end),\"batch_metadata\":".utf8) + json.bytes + Array("}".utf8)
    }
}

/// Produces the body of one batch, piece by piece, as often as needed.
package final class BatchBody {
    let batch: Batch
    /// nil: only the records, one per line, audio by the names of its files.
    private let envelope: Envelope?
    private let compression: Compression
    private let source: RecordSource

    init(batch: Batch, envelope: Envelope?, compression: Compression, source: RecordSource) {
        self.batch = batch
        self.envelope = envelope
        self.compression = compression
        self.source = source
    }

    package convenience init(
        batch: Batch,
        envelope: Envelope,
        compression: Compression,
        reader: Reader
    ) throws {
        self.init(
            batch: batch,
            envelope: envelope,
            compression: compression,
            source: try RecordSource(reader: reader, clockMap: batch.clockMap)
        )
    }

    /// Records per piece; an audio record has several pieces.
    static let pageSize: Int64 = 256

    /// Returns the body of a request: in memory if it is small, otherwise produced twice.
    package func request() throws -> RequestBody {
        var kept = KeptPieces()
        let next = pieces()
        while let piece = try next() { kept.append(piece) }
        return kept.body ?? RequestBody(length: kept.length, pieces)
    }

    /// Starts a new pass over the body.
    func pieces() -> PieceSupply {
        var pieces = Pieces(body: self)
        return { try pieces.next() }
    }

    /// The pieces of one pass over the body, some tens of kB each.
    private struct Pieces {
        private let body: BatchBody
        private let records: ClosedRange<Int64>
        private var compressor: PieceCompressor
        private var position: Int64
        /// The audio record that is being produced.
        private var sound: AudioRecord?
        private let isAudio: Bool
        private let isColumns: Bool
        private var isStarted: Bool
        private var isDone = false

        init(body: BatchBody) {
            self.body = body
            records = body.batch.first...body.batch.last
            position = body.batch.first
            isAudio = body.envelope != nil && body.batch.stream == .audio
            isColumns = body.envelope != nil && body.batch.form == .columns
            isStarted = body.envelope == nil
            // Without an envelope it is of the names of the files.
            let isObject = body.envelope == nil
            compressor = PieceCompressor(
                body.compression,
                isObject ? .rows : .init(body.batch.stream, body.batch.form)
            )
        }

        /// Returns the next piece (never empty), or nil at the end.
        mutating func next() throws -> [UInt8]? {
            while !isDone {
                let plain = try plain()
                let piece = try compressor.receive(plain, isLast: isDone)
                if !piece.isEmpty { return piece }
            }
            return nil
        }

        private mutating func plain() throws -> [UInt8] {
            if !isStarted, let envelope = body.envelope {
                isStarted = true
                return envelope.opening(body.batch.form)
            }
            if let piece = try sound?.next() { return piece }
            sound = nil
            guard position <= records.upperBound else {
                isDone = true
                return body.envelope?.closing(body.batch) ?? []
            }
            mustHold(position >= records.lowerBound, "a body holds records of its batch")
            return try isColumns ? columns() : isAudio ? nextAudio() : page()
        }

        /// Starts the next audio record: returns its JSON up to the audio.
        private mutating func nextAudio() throws -> [UInt8] {
            let record = try body.source.soundRecord(position)
            let comma: [UInt8] = position > records.lowerBound ? [UInt8(ascii: ",")] : []
            sound = record
            position += 1
            return comma + (try record.next() ?? [])
        }

        /// Makes all records one piece.
        private mutating func columns() throws -> [UInt8] {
            position = records.upperBound + 1
            var table = ColumnTable()
            try body.source.forEach(body.batch.stream, records) { _, json in
                try table.append(json)
                return true
            }
            mustHold(table.count == records.count, "a table has the records of its batch")
            return table.json()
        }

        private mutating func page() throws -> [UInt8] {
            let page = position...min(records.upperBound, position + BatchBody.pageSize - 1)
            position = page.upperBound + 1
            var bytes: [UInt8] = []
            var count = 0
            try body.source.forEach(body.batch.stream, page) { sequence, json in
                let isLine = body.envelope == nil
                if !isLine, sequence > records.lowerBound { bytes.append(UInt8(ascii: ",")) }
                bytes.append(contentsOf: json)
                if isLine { bytes.append(UInt8(ascii: "\n")) }
                count += 1
                return true
            }
            mustHold(count == page.count, "a body has the records of its batch")
            return bytes
        }
    }
}

extension BodyContent {
    /// Returns the content of the body of a batch.
    init(_ stream: Stream, _ form: Batch.Form) {
        self = stream == .audio ? .audio : form == .columns ? .columns : .rows
    }
}
