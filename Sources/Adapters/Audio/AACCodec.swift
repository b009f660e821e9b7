// Encodes AAC, low complexity, in ADTS frames (ISO/IEC 13818-7), with libvo-aacenc.
import CAAC

/// Owns a libvo-aacenc encoder.
///
/// A file of ADTS frames cannot say what a decoder must drop at its start. So the run begins with
/// as many zeros as extend the encoder's delay to whole frames, and those frames are not stored:
/// stored frame n decodes to samples 1024 n … 1024 n + 1023 of the run. A frame overlaps the
/// previous one, so the first of a file, which has none, fades in.
final class AACCodec: BlockCodec {
    let blockFrames = 1024
    /// Samples by which the decoder's output is late: one frame, and the lookahead of the window
    /// choice.
    private static let delay = 1600
    private static let dropped = 2
    /// ffmpeg does not recognize shorter files as AAC; a shorter run is padded with silence.
    private static let fewest = 4
    /// Maximum bytes of a frame: 6144 bits and a header, with a margin (the library checks no
    /// limit).
    private static let room = 8192

    private let encoder: OpaquePointer
    private var samples: [Int16]
    /// Audio blocks encoded, and frames produced, including the dropped ones.
    private var blocks = 0
    private var frames = 0

    init(rate: Int, bitrate: Int) throws {
        var code: UInt32 = 0
        let handle = waypost_aac_open(Int32(clamping: rate), Int32(clamping: bitrate), &code)
        guard let handle else {
            throw CodecError("voAACEncSetParam", "error 0x\(String(code, radix: 16))")
        }
        encoder = handle
        samples = [Int16](repeating: 0, count: Self.dropped * 1024 - Self.delay)
    }

    deinit {
        waypost_aac_close(encoder)
    }

    func encode(_ block: ArraySlice<Int16>) throws -> [[UInt8]] {
        samples += block
        blocks += 1
        return try drain()
    }

    func finish(_ rest: ArraySlice<Int16>) throws -> [[UInt8]] {
        var packets = rest.isEmpty ? [] : try encode(rest)
        while frames < max(blocks, Self.fewest) + Self.dropped {
            samples += [Int16](repeating: 0, count: blockFrames - samples.count % blockFrames)
            packets += try drain()
        }
        return packets
    }

    private func drain() throws -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while samples.count >= blockFrames {
            let packet = try encodeFrame()
            samples.removeFirst(blockFrames)
            frames += 1
            if frames > Self.dropped { packets.append(packet) }
        }
        return packets
    }

    private func encodeFrame() throws -> [UInt8] {
        var frame = [UInt8](repeating: 0, count: Self.room)
        var length = 0
        let code = waypost_aac_encode(encoder, samples, &frame, frame.count, &length)
        guard code == 0, length <= frame.count else {
            throw CodecError("voAACEncGetOutputData", "error 0x\(String(code, radix: 16))")
        }
        return Array(frame.prefix(length))
    }
}
