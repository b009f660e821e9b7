// Converts stored records to JSON, a page at a time.
import HTTP
import Host
import JSON
package import Queue
package import Records

/// Reads the records of a stream and converts each to one JSON object.
package final class RecordSource {
    /// The number of records read in one short transaction.
    private static let pageSize: Int64 = 256
    let reader: Reader
    private let dates: RecordDates
    private let sound: AudioPlace
    private var json = JSONWriter()

    /// The form of the audio in a chunk's JSON.
    package enum AudioPlace: Sendable {
        /// `audio_data`, in base64.
        case inline
        /// `audio_file`, the name of a file beside the records.
        case named
    }

    /// Creates a source; `clockMap` is the newest clock map entry that timestamps may use.
    package init(
        reader: Reader,
        clockMap last: Int64,
        sound: AudioPlace = .inline
    ) throws {
        self.reader = reader
        self.sound = sound
        dates = try reader.dates(through: last)
    }

    /// Calls `body` with each record in order until it returns false; the bytes are valid during
    /// that call.
    ///
    /// A read transaction is open, so `body` must not block; `between`, called after each page,
    /// may. Throws RecordMissingError if a record is missing or damaged.
    package func forEach(
        _ stream: Stream,
        _ range: ClosedRange<Int64>,
        between: () throws -> Void = {},
        _ body: (_ sequence: Int64, _ json: [UInt8]) throws -> Bool
    ) throws {
        let kind = reader.kind(of: stream)
        // Audio is large: a page of it is one chunk.
        let step = kind.isLarge ? 1 : Self.pageSize
        for first in stride(from: range.lowerBound, through: range.upperBound, by: Int(step)) {
            let page = first...min(range.upperBound, first + step - 1)
            do {
                try write(kind, page) { sequence, bytes in
                    guard try body(sequence, bytes) else { throw Enough() }
                }
            } catch is Enough {
                return
            }
            try between()
        }
    }

    /// Calls `body` with the beginning and length of each record's JSON until it returns false.
    func forEachLength(
        _ stream: Stream,
        _ range: ClosedRange<Int64>,
        _ body: (_ sequence: Int64, _ beginning: [UInt8], _ length: Int) throws -> Bool
    ) throws {
        guard stream == .audio else {
            return try forEach(stream, range) { try body($0, $1, $1.count) }
        }
        for sequence in range {
            let record = try soundRecord(sequence)
            guard try body(sequence, record.head, try record.rest()) else { return }
        }
    }

    /// Ends a page early: a small batch must not cost a whole page.
    private struct Enough: Error {}

    private func write(
        _ kind: StreamKind,
        _ page: ClosedRange<Int64>,
        _ body: (Int64, [UInt8]) throws -> Void
    ) throws {
        let ids = try reader.ids(kind.stream, page)
        switch kind.shape {
        case .plain(let columns): try writePlain(kind, columns, page, ids, body)
        case .sightings:
            try reader.sightings(page) { stored in
                json.clear()
                RecordJSON.write(
                    stored.record,
                    id: try ids.id(stored.sequence),
                    at: moment(stored, stored.record.stamp),
                    to: &json
                )
                try body(stored.sequence, json.bytes)
            }
        case .sound:
            // Collect all rows first, because making the JSON of a chunk reads its segments with
            // another statement.
            for stored in try chunks(page) {
                json.clear()
                try RecordJSON.write(
                    stored.record,
                    id: try ids.id(stored.sequence),
                    at: moment(stored, stored.record.start),
                    to: &json
                ) { json in
                    switch sound {
                    case .inline: try writeAudio(of: stored, to: &json)
                    case .named: json.field("audio_file", try fileName(of: stored))
                    }
                }
                try body(stored.sequence, json.bytes)
            }
        }
    }

    private func writePlain(
        _ kind: StreamKind,
        _ columns: [Column],
        _ page: ClosedRange<Int64>,
        _ ids: RecordIDs,
        _ body: (Int64, [UInt8]) throws -> Void
    ) throws {
        try reader.rows(kind, page) { stored in
            json.clear()
            RecordJSON.write(
                columns,
                stored.record.values,
                id: try ids.id(stored.sequence),
                at: moment(stored, stored.record.stamp),
                seen: stored.record.stamp.wall,
                to: &json
            ) { [dates] boot, stamp in dates.resolve(stamp, boot: boot ?? stored.boot) }
            try body(stored.sequence, json.bytes)
        }
    }

    private func moment<Record>(_ stored: Stored<Record>, _ stamp: Stamp) -> Moment {
        dates.resolve(stamp, boot: stored.boot)
    }

    // MARK: Audio

    private func writeAudio(of stored: Stored<Chunk>, to json: inout JSONWriter) throws {
        json.key("audio_data")
        json.append([UInt8(ascii: "\"")])
        try json.extend { text in
            var base64 = Base64Encoder()
            try file(of: stored) { base64.encode($0, into: &text) }
            base64.finish(into: &text)
        }
        json.raw("\"")
    }

    /// Returns the JSON that `forEach` produces with inline audio, without holding all of it in
    /// memory.
    func soundRecord(_ sequence: Int64) throws -> AudioRecord {
        guard let stored = try chunks(sequence...sequence).first else {
            throw RecordMissingError(stream: .audio, sequence: sequence, why: "it is not there")
        }
        var head = 0
        json.clear()
        RecordJSON.write(
            stored.record,
            id: try reader.ids(.audio, sequence...sequence).id(sequence),
            at: moment(stored, stored.record.start),
            to: &json
        ) { json in
            json.key("audio_data")
            json.append([UInt8(ascii: "\"")])
            head = json.bytes.count
            json.raw("\"")
        }
        return AudioRecord(json.bytes, head: head, file: try soundFile(of: stored))
    }

    /// Calls `piece` with each piece of a chunk's playable file.
    package func file(of stored: Stored<Chunk>, _ piece: ([UInt8]) throws -> Void) throws {
        let next = try soundFile(of: stored)
        while let bytes = try next() { try piece(bytes) }
    }

    /// Returns when the audio of a chunk begins, and how that is known.
    package func start(of stored: Stored<Chunk>) -> Moment {
        moment(stored, stored.record.start)
    }

    /// Returns the chunks of a range.
    package func chunks(_ range: ClosedRange<Int64>) throws -> [Stored<Chunk>] {
        var chunks: [Stored<Chunk>] = []
        try reader.chunks(range) { chunks.append($0) }
        return chunks
    }

    /// Returns the name of a chunk's file: its start time and its id.
    package func fileName(of stored: Stored<Chunk>) throws -> String {
        let sequence = stored.sequence
        return soundName(
            moment(stored, stored.record.start).wall,
            id: try reader.ids(.audio, sequence...sequence).id(sequence),
            codec: stored.record.codec
        )
    }

    // MARK: Time

    /// Returns when a record happened, as its JSON states it.
    func time(_ stream: Stream, _ sequence: Int64) throws -> WallTime? {
        let kind = reader.kind(of: stream)
        let page = sequence...sequence
        var time: WallTime?
        switch kind.shape {
        case .plain(let columns):
            try reader.rows(kind, page) { stored in
                let given = RecordJSON.givenTime(columns, stored.record.values) {
                    dates.resolve($1, boot: $0 ?? stored.boot)
                }
                time = given ?? moment(stored, stored.record.stamp).wall
            }
        case .sightings:
            try reader.sightings(page) { time = moment($0, $0.record.stamp).wall }
        case .sound: time = try chunks(page).first.map { moment($0, $0.record.start).wall }
        }
        return time
    }
}
