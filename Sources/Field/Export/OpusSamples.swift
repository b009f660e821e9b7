// Decodes an Opus chunk to samples, for export as WAV.
import Audio
import AudioFiles
import COpus
import Queue
import Records
import Upload

/// Decodes a chunk to exactly as many samples as it has frames.
enum OpusSamples {
    /// Calls `body` with the samples of each segment in order.
    ///
    /// Throws RecordMissingError for a segment that is not in the database, CodecError if libopus fails.
    static func decode(
        _ stored: Stored<Chunk>,
        _ reader: Reader,
        _ body: ([Int16]) throws -> Void
    ) throws {
        let chunk = stored.record
        let decoder = try OpusDecoderHandle(rate: chunk.rate)
        // They only let the decoder settle, so a damaged one costs no more than the chunk that has it.
        for packet in try reader.preroll(before: chunk) { _ = try? decoder.decode(packet) }
        var (skip, left) = (chunk.preskip, chunk.frames)
        for place in 0..<chunk.segments {
            guard let segment = try reader.segment(chunk.firstSegment + Int64(place)) else {
                throw RecordMissingError(
                    stream: .audio,
                    sequence: stored.sequence,
                    why: "its segment is not there"
                )
            }
            var packets = SegmentPackets.split(segment.data)
            // The last packet is repeated as the first of the next segment.
            if place < chunk.segments - 1 { _ = packets.popLast() }
            var samples: [Int16] = []
            for packet in packets { samples += try decoder.decode(packet) }
            let dropped = min(skip, samples.count)
            skip -= dropped
            let wanted = samples.dropFirst(dropped).prefix(left)
            left -= wanted.count
            try body(Array(wanted))
        }
    }
}

/// Owns a libopus decoder.
private final class OpusDecoderHandle {
    private let decoder: OpaquePointer
    /// A buffer for 120 ms, the longest packet.
    private var samples: [Int16]

    init(rate: Int) throws {
        var code: Int32 = 0
        guard let decoder = opus_decoder_create(Int32(clamping: rate), 1, &code) else {
            throw CodecError(opus: "opus_decoder_create", code: code)
        }
        self.decoder = decoder
        samples = [Int16](repeating: 0, count: rate * 120 / 1000)
    }

    deinit { opus_decoder_destroy(decoder) }

    func decode(_ packet: ArraySlice<UInt8>) throws -> ArraySlice<Int16> {
        let room = Int32(samples.count)
        let count = packet.withUnsafeBufferPointer {
            opus_decode(decoder, $0.baseAddress, Int32($0.count), &samples, room, 0)
        }
        guard count >= 0 else { throw CodecError(opus: "opus_decode", code: count) }
        return samples.prefix(Int(count))
    }
}
