// Samples to encoded segments.
import AudioFiles
import COpus
import Records

/// A segment that an encoder has finished.
struct EncodedSegment: Equatable {
    var frames: Int
    /// Mean of the squared samples without their DC part, full scale 1.
    var meanSquare: Double
    var data: [UInt8]
}

/// Encodes an unbroken run of samples, one segment after another.
protocol SegmentEncoder: AnyObject {
    /// Frames that the decoder drops at a segment's start.
    var preskip: Int { get }
    /// Takes samples; returns the segments that they complete.
    func encode(_ samples: ArraySlice<Int16>) throws -> [EncodedSegment]
    /// Ends the run; the sound that is left, the last segment of it shorter.
    func finish() throws -> [EncodedSegment]
}

extension AudioSettings {
    /// An encoder for one run.
    ///
    /// Throws what its library says of rate and bitrate.
    func newEncoder() throws -> any SegmentEncoder {
        let frames = segmentFrames
        switch codec {
        case .opus:
            return try OpusSegmentEncoder(rate: rate, bitrate: bitrate, segmentFrames: frames)
        case .wav:
            return PCMEncoder(segmentFrames: frames)
        case .flac:
            let codec = try FlacCodec(rate: rate, segmentFrames: frames)
            return BlockSegmentEncoder(codec, segmentFrames: frames)
        case .aac:
            let codec = try AACCodec(rate: rate, bitrate: bitrate)
            return BlockSegmentEncoder(codec, segmentFrames: frames)
        }
    }
}

/// 16-bit samples as they are.
final class PCMEncoder: SegmentEncoder {
    let preskip = 0
    private let segmentFrames: Int
    private var samples: [Int16] = []

    init(segmentFrames: Int) {
        self.segmentFrames = segmentFrames
    }

    func encode(_ new: ArraySlice<Int16>) -> [EncodedSegment] {
        samples.append(contentsOf: new)
        var segments: [EncodedSegment] = []
        while samples.count >= segmentFrames {
            segments.append(Self.segment(samples.prefix(segmentFrames)))
            samples.removeFirst(segmentFrames)
        }
        return segments
    }

    func finish() -> [EncodedSegment] {
        defer { samples = [] }
        return samples.isEmpty ? [] : [Self.segment(samples[...])]
    }

    private static func segment(_ samples: ArraySlice<Int16>) -> EncodedSegment {
        EncodedSegment(
            frames: samples.count,
            meanSquare: SampleSums(samples).variance(),
            data: samples.flatMap {
                [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
            }
        )
    }
}

/// Opus, 20 ms a packet, one encoder for the whole run.
///
/// The encoder lags by `preskip` frames, so a segment carries one packet more than its length: the first of
/// the next segment, from which a decoder gets the last `preskip` frames.
final class OpusSegmentEncoder: SegmentEncoder {
    private let encoder: OpusHandle
    private let packetFrames: Int
    private let packetsPerSegment: Int
    private var samples: [Int16] = []
    /// The packets of the segment under way, and the sums of the samples in each.
    private var packets: [(bytes: [UInt8], sums: SampleSums)] = []
    /// Frames of the run that came in since the segment under way began.
    private var frames = 0

    var preskip: Int { encoder.lookahead }

    init(rate: Int, bitrate: Int, segmentFrames: Int) throws {
        encoder = try OpusHandle(rate: rate, bitrate: bitrate)
        packetFrames = rate / 50
        packetsPerSegment = max(1, segmentFrames / packetFrames)
    }

    func encode(_ new: ArraySlice<Int16>) throws -> [EncodedSegment] {
        samples.append(contentsOf: new)
        frames += new.count
        return try drain()
    }

    func finish() throws -> [EncodedSegment] {
        // A whole segment may be waiting for its last packet, with the start of the next behind it.
        let left = frames
        guard left > 0 else { return [] }
        // Zeros push the last sound through the encoder.
        let wanted = (left + preskip + packetFrames - 1) / packetFrames
        let zeros = (wanted - packets.count) * packetFrames - samples.count
        samples += [Int16](repeating: 0, count: max(0, zeros))
        var ended = try drain()
        if frames > 0 { ended.append(segment(packets[...], frames: frames)) }
        packets = []
        samples = []
        frames = 0
        return ended
    }

    private func drain() throws -> [EncodedSegment] {
        var segments: [EncodedSegment] = []
        while samples.count >= packetFrames {
            try encodePacket()
            guard packets.count > packetsPerSegment else { continue }
            // Less than the packets hold only at the end of a run, where zeros fill them.
            let whole = min(frames, packetsPerSegment * packetFrames)
            segments.append(segment(packets[...], frames: whole))
            packets.removeFirst(packetsPerSegment)
            frames -= whole
        }
        return segments
    }

    private func encodePacket() throws {
        let block = samples.prefix(packetFrames)
        packets.append((try encoder.encode(block), SampleSums(block)))
        samples.removeFirst(block.count)
    }

    private func segment(
        _ packets: ArraySlice<(bytes: [UInt8], sums: SampleSums)>,
        frames: Int
    ) -> EncodedSegment {
        var data: [UInt8] = []
        for packet in packets { SegmentPackets.append(packet.bytes, to: &data) }
        let sums = packets.prefix(packetsPerSegment).reduce(SampleSums()) { $0 + $1.sums }
        return EncodedSegment(
            frames: frames,
            meanSquare: sums.variance(over: frames),
            data: data
        )
    }
}

/// Owns a libopus encoder.
private final class OpusHandle {
    private let encoder: OpaquePointer
    /// Frames that it lags behind (OPUS_GET_LOOKAHEAD).
    let lookahead: Int

    init(rate: Int, bitrate: Int) throws {
        var code: Int32 = 0
        guard let encoder = opus_encoder_create(Int32(rate), 1, OPUS_APPLICATION_AUDIO, &code)
        else {
            throw OpusError(call: "opus_encoder_create", code: code)
        }
        self.encoder = encoder
        var lag: Int32 = 0
        waypost_opus_set(encoder, OPUS_SET_BITRATE_REQUEST, Int32(clamping: bitrate))
        // Half of the default effort: no difference to be heard, a third of the time (measured).
        waypost_opus_set(encoder, OPUS_SET_COMPLEXITY_REQUEST, 5)
        waypost_opus_get(encoder, OPUS_GET_LOOKAHEAD_REQUEST, &lag)
        lookahead = Int(lag)
    }

    deinit {
        opus_encoder_destroy(encoder)
    }

    func encode(_ samples: ArraySlice<Int16>) throws -> [UInt8] {
        var packet = [UInt8](repeating: 0, count: 1500)
        let count = samples.withUnsafeBufferPointer { samples -> Int32 in
            guard let start = samples.baseAddress else { return OPUS_BAD_ARG }
            return opus_encode(encoder, start, Int32(samples.count), &packet, Int32(packet.count))
        }
        guard count >= 0 else { throw OpusError(call: "opus_encode", code: count) }
        return Array(packet.prefix(Int(count)))
    }
}

/// libopus refused, with its own message.
package struct OpusError: Error, CustomStringConvertible {
    var call: String
    var code: Int32

    package init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    package var description: String { "\(call): \(String(cString: opus_strerror(code)))" }
}
