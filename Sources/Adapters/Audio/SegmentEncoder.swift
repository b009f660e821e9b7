// Encodes samples into segments: Opus and PCM, and the choice of the codec.
import AudioFiles
import COpus
import Host
import Records

/// A finished segment.
struct EncodedSegment: Equatable {
    var frames: Int
    /// Mean square of the samples without their DC part; full scale is 1.
    var meanSquare: Double
    var data: [UInt8]
}

/// Encodes an unbroken run of samples, segment by segment.
protocol SegmentEncoder: AnyObject {
    /// Frames that the decoder drops at a segment's start.
    var preskip: Int { get }
    /// Encodes samples; returns the segments that they complete.
    func encode(_ samples: ArraySlice<Int16>) throws -> [EncodedSegment]
    /// Ends the run; returns the remaining segments, the last one possibly shorter.
    func finish() throws -> [EncodedSegment]
}

extension AudioSettings {
    /// Returns an encoder for one run.
    ///
    /// Throws the library's error about rate or bitrate.
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

/// Stores 16-bit samples unencoded.
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
            data: samples.littleEndianBytes
        )
    }
}

/// Encodes Opus in packets of 20 ms, with one encoder for the whole run.
///
/// The encoder lags by `preskip` frames, so a segment carries one packet more than its length: the
/// first of the next segment, from which a decoder gets the last `preskip` frames.
final class OpusSegmentEncoder: SegmentEncoder {
    private let encoder: OpusHandle
    private let packetFrames: Int
    private let packetsPerSegment: Int
    private var samples: [Int16] = []
    /// The packets of the current segment, and the sums of each packet's samples.
    private var packets: [(bytes: [UInt8], sums: SampleSums)] = []
    /// Frames received since the start of the current segment.
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
        // A complete segment may still wait for its last packet, followed by the start of the next
        // one.
        let left = frames
        guard left > 0 else { return [] }
        // Zeros push the last audio through the encoder.
        let wanted = (left + preskip + packetFrames - 1) / packetFrames
        let zeros = (wanted - packets.count) * packetFrames - samples.count
        samples += [Int16](repeating: 0, count: max(0, zeros))
        var ended = try drain()
        if frames > 0 { ended.append(segment(frames: frames)) }
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
            // Fewer frames than the packets hold only at the end of a run, where zeros fill them.
            let whole = min(frames, packetsPerSegment * packetFrames)
            segments.append(segment(frames: whole))
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

    private func segment(frames: Int) -> EncodedSegment {
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
    /// The encoder's delay in frames (OPUS_GET_LOOKAHEAD).
    let lookahead: Int

    init(rate: Int, bitrate: Int) throws {
        var code: Int32 = 0
        guard let encoder = opus_encoder_create(Int32(rate), 1, OPUS_APPLICATION_AUDIO, &code)
        else {
            throw CodecError(opus: "opus_encoder_create", code: code)
        }
        self.encoder = encoder
        var lag: Int32 = 0
        waypost_opus_set(encoder, OPUS_SET_BITRATE_REQUEST, Int32(clamping: bitrate))
        // Half of the default complexity: no audible difference, a third of the time (measured).
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
        guard count >= 0 else { throw CodecError(opus: "opus_encode", code: count) }
        return Array(packet.prefix(Int(count)))
    }
}
