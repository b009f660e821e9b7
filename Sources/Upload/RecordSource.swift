// Stored records to JSON, a page at a time.
internal import Host
package import Store

/// Reads the records of a stream and gives each as the bytes of one JSON object.
package final class RecordSource {
    /// Records read in one short transaction.
    private static let pageSize: Int64 = 256
    private let reader: Reader
    private let clockMap: ClockMap
    private let sound: SoundPlace
    private var json = JSONText()

    /// Where the records of sound have it.
    package enum SoundPlace: Sendable {
        /// `audio_data`, in base64.
        case inline
        /// `audio_file`, the name of a file beside the records.
        case named
    }

    /// `clockMap`: the newest entry of the clock map that timestamps may use.
    package init(
        reader: Reader,
        clockMap last: Int64,
        sound: SoundPlace = .inline
    ) throws {
        self.reader = reader
        self.sound = sound
        clockMap = try reader.clockMap(through: last)
        try reader.refreshIDs()
    }

    /// Calls `body` with each record in order until it returns false; the bytes are good for that call.
    package func forEach(
        _ stream: Stream,
        _ range: ClosedRange<Int64>,
        _ body: (_ sequence: Int64, _ json: [UInt8]) throws -> Bool
    ) throws {
        // Sound is large: a page of it is one chunk.
        let step = stream == .audio ? 1 : Self.pageSize
        for first in stride(from: range.lowerBound, through: range.upperBound, by: Int(step)) {
            let page = first...min(range.upperBound, first + step - 1)
            var wantsMore = true
            try write(stream, page) { sequence, bytes in
                if wantsMore { wantsMore = try body(sequence, bytes) }
            }
            guard wantsMore else { return }
        }
    }

    private func write(
        _ stream: Stream,
        _ page: ClosedRange<Int64>,
        _ body: (Int64, [UInt8]) throws -> Void
    ) throws {
        switch stream {
        case .location:
            try reader.fixes(page) { stored in
                json.clear()
                RecordJSON.write(
                    stored.record,
                    id: id(stream, stored),
                    at: moment(stored, stored.record.stamp),
                    to: &json
                )
                try body(stored.sequence, json.bytes)
            }
        case .beacons:
            try reader.sightings(page) { stored in
                json.clear()
                RecordJSON.write(
                    stored.record,
                    id: id(stream, stored),
                    at: moment(stored, stored.record.stamp),
                    to: &json
                )
                try body(stored.sequence, json.bytes)
            }
        case .events:
            try reader.events(page) { stored, kind, source, detail in
                json.clear()
                RecordJSON.write(
                    kind: kind,
                    source: source,
                    detail: detail,
                    id: id(stream, stored),
                    at: moment(stored, stored.record),
                    to: &json
                )
                try body(stored.sequence, json.bytes)
            }
        case .audio:
            // Collected first: assembling a chunk reads segments, and one statement is one read.
            var chunks: [Stored<Chunk>] = []
            try reader.chunks(page) { chunks.append($0) }
            for stored in chunks {
                json.clear()
                try RecordJSON.write(
                    stored.record,
                    id: id(stream, stored),
                    at: moment(stored, stored.record.start),
                    to: &json
                ) { json in
                    switch sound {
                    case .inline: try writeSound(of: stored, to: &json)
                    case .named: json.field("audio_file", fileName(of: stored))
                    }
                }
                try body(stored.sequence, json.bytes)
            }
        }
    }

    private func id<Record>(_ stream: Stream, _ stored: Stored<Record>) -> String {
        reader.recordIDs.id(stream, stored.sequence)
    }

    private func moment<Record>(_ stored: Stored<Record>, _ stamp: Stamp) -> RecordJSON.Moment {
        clockMap.resolve(stamp, boot: stored.boot)
    }

    // MARK: Sound

    private func writeSound(of stored: Stored<Chunk>, to json: inout JSONText) throws {
        json.key("audio_data")
        json.append([UInt8(ascii: "\"")])
        try json.extend { text in
            var base64 = Base64Encoder()
            try file(of: stored) { base64.encode($0, into: &text) }
            base64.finish(into: &text)
        }
        json.raw("\"")
    }

    /// The playable file of a chunk, piece by piece.
    package func file(of stored: Stored<Chunk>, _ piece: ([UInt8]) throws -> Void) throws {
        let file = try soundFile(of: stored)
        while let bytes = try file.next() { try piece(bytes) }
    }

    /// One pass over the playable file of a chunk.
    func soundFile(of stored: Stored<Chunk>) throws -> any SoundFile {
        switch stored.record.codec {
        case .opus: try OpusSoundFile(stored, reader: reader)
        case .wav: PlainSoundFile(wave: stored.record, reader: reader)
        case .flac: try PlainSoundFile(flac: stored.record, reader: reader)
        case .aac: PlainSoundFile(aac: stored.record, reader: reader)
        }
    }

    /// The chunks of a range.
    func chunks(_ range: ClosedRange<Int64>) throws -> [Stored<Chunk>] {
        var chunks: [Stored<Chunk>] = []
        try reader.chunks(range) { chunks.append($0) }
        return chunks
    }

    func fileName(of stored: Stored<Chunk>) -> String {
        soundName(
            moment(stored, stored.record.start).wall,
            id: id(.audio, stored),
            codec: stored.record.codec
        )
    }

    // MARK: Time

    /// When a record happened, as its JSON says it; nil if it is not there.
    func time(_ stream: Stream, _ sequence: Int64) throws -> WallTime? {
        let page = sequence...sequence
        var time: WallTime?
        switch stream {
        case .location: try reader.fixes(page) { time = moment($0, $0.record.stamp).wall }
        case .beacons: try reader.sightings(page) { time = moment($0, $0.record.stamp).wall }
        case .events:
            try reader.events(page) { stored, _, _, _ in time = moment(stored, stored.record).wall }
        case .audio: time = try chunks(page).first.map { moment($0, $0.record.start).wall }
        }
        return time
    }
}
