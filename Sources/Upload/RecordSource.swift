// Stored records to JSON, a page at a time.
internal import Containers
internal import Host
package import Store

/// Reads the records of a stream and gives each as the bytes of one JSON object.
package final class RecordSource {
    /// Records read in one short transaction.
    private static let pageSize: Int64 = 256
    /// Packets before a chunk that let the decoder settle: 80 ms (RFC 7845, section 4.6).
    private static let prerollPackets = 4

    private let reader: Reader
    private let clockMap: ClockMap
    private var json = JSONText()

    /// `clockMap`: the newest entry of the clock map that timestamps may use.
    package init(reader: Reader, clockMap last: Int64) throws {
        self.reader = reader
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
                    try json.extend { text in
                        var base64 = Base64Encoder()
                        try file(of: stored) { base64.encode($0, into: &text) }
                        base64.finish(into: &text)
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

    /// The playable file of a chunk, piece by piece.
    package func file(of stored: Stored<Chunk>, _ piece: ([UInt8]) throws -> Void) throws {
        switch stored.record.codec {
        case .opus: try oggOpus(stored, piece)
        case .wav: try wave(stored.record, piece)
        }
    }

    private func oggOpus(_ stored: Stored<Chunk>, _ piece: ([UInt8]) throws -> Void) throws {
        let chunk = stored.record
        let preroll = try prerollPackets(before: chunk)
        var file = OggOpusFile(
            serial: UInt32(truncatingIfNeeded: stored.sequence),
            rate: chunk.rate,
            frames: chunk.frames,
            preskip: chunk.preskip,
            prerollPackets: preroll.count
        )
        try piece(file.headers())
        for packet in preroll { try piece(file.append(packet)) }
        for index in 0..<chunk.segments {
            guard let segment = try reader.segment(chunk.firstSegment + Int64(index)) else {
                continue
            }
            var packets = OpusPackets.split(segment.data)
            // The last packet comes again as the first of the next segment.
            if index < chunk.segments - 1 { _ = packets.popLast() }
            for packet in packets { try piece(file.append(packet)) }
        }
        try piece(file.finish())
    }

    /// The packets just before a chunk, where its run has any.
    private func prerollPackets(before chunk: Chunk) throws -> [ArraySlice<UInt8>] {
        guard let own = try reader.segment(chunk.firstSegment),
            let before = try reader.segment(chunk.firstSegment - 1), before.run == own.run
        else { return [] }
        return OpusPackets.split(before.data).dropLast().suffix(Self.prerollPackets)
    }

    private func wave(_ chunk: Chunk, _ piece: ([UInt8]) throws -> Void) throws {
        try piece(WaveFile.header(rate: chunk.rate, frames: chunk.frames))
        for index in 0..<Int64(chunk.segments) {
            if let segment = try reader.segment(chunk.firstSegment + index) {
                try piece(segment.data)
            }
        }
    }
}
