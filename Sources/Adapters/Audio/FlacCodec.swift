// Encodes FLAC, which is lossless.
import AudioFiles
import CFLAC

/// Owns a libFLAC encoder; the fixed block size divides a segment.
final class FlacCodec: BlockCodec {
    /// Maximum samples per block in the streamable subset up to 48 kHz (RFC 9639, section 7).
    private static let longestBlock = 4608

    let blockFrames: Int
    private let encoder: UnsafeMutablePointer<FLAC__StreamEncoder>
    private let output = FlacOutput()

    init(rate: Int, segmentFrames: Int) throws {
        let maximum = min(Self.longestBlock, max(16, segmentFrames))
        blockFrames = (16...maximum).reversed().first { segmentFrames % $0 == 0 } ?? maximum
        guard let encoder = FLAC__stream_encoder_new() else {
            throw CodecError("FLAC__stream_encoder_new", "out of memory")
        }
        self.encoder = encoder
        FLAC__stream_encoder_set_channels(encoder, 1)
        FLAC__stream_encoder_set_bits_per_sample(encoder, 16)
        FLAC__stream_encoder_set_sample_rate(encoder, UInt32(clamping: rate))
        // The default level of `flac`; set the block size after it, because the level sets one,
        // too.
        FLAC__stream_encoder_set_compression_level(encoder, 5)
        FLAC__stream_encoder_set_blocksize(encoder, UInt32(blockFrames))
        // An MD5 of the whole stream is useless, as the stream is cut into files later.
        FLAC__stream_encoder_set_do_md5(encoder, 0)
        let status = FLAC__stream_encoder_init_stream(
            encoder,
            receive,
            nil,
            nil,
            nil,
            // The output lives as long as the encoder: both are properties of this object.
            Unmanaged.passUnretained(output).toOpaque()
        )
        guard status == FLAC__STREAM_ENCODER_INIT_STATUS_OK else {
            let reason = String(cString: waypost_flac_init_status(status))
            throw CodecError("FLAC__stream_encoder_init_stream", reason)
        }
    }

    deinit {
        FLAC__stream_encoder_delete(encoder)
    }

    func encode(_ block: ArraySlice<Int16>) throws -> [[UInt8]] {
        let samples = block.map(FLAC__int32.init)
        guard FLAC__stream_encoder_process_interleaved(encoder, samples, UInt32(samples.count)) != 0
        else { throw failure("FLAC__stream_encoder_process_interleaved") }
        return output.take()
    }

    func finish(_ rest: ArraySlice<Int16>) throws -> [[UInt8]] {
        let packets = rest.isEmpty ? [] : try encode(rest)
        guard FLAC__stream_encoder_finish(encoder) != 0 else {
            throw failure("FLAC__stream_encoder_finish")
        }
        return packets + output.take()
    }

    private func failure(_ call: String) -> CodecError {
        CodecError(call, String(cString: waypost_flac_state(encoder)))
    }
}

/// Collects libFLAC's frames, each prefixed with its length.
private final class FlacOutput {
    private var frames: [[UInt8]] = []

    func append(_ frame: UnsafeBufferPointer<UInt8>) {
        var data: [UInt8] = []
        SegmentPackets.append(frame, to: &data)
        frames.append(data)
    }

    func take() -> [[UInt8]] {
        defer { frames = [] }
        return frames
    }
}

/// libFLAC's write callback: stores frames; ignores the file header, which has no samples.
private func receive(
    encoder: UnsafePointer<FLAC__StreamEncoder>?,
    bytes: UnsafePointer<FLAC__byte>?,
    count: Int,
    samples: UInt32,
    frame: UInt32,
    output: UnsafeMutableRawPointer?
) -> FLAC__StreamEncoderWriteStatus {
    guard let output, samples > 0 else { return FLAC__STREAM_ENCODER_WRITE_STATUS_OK }
    Unmanaged<FlacOutput>.fromOpaque(output).takeUnretainedValue()
        .append(UnsafeBufferPointer(start: bytes, count: count))
    return FLAC__STREAM_ENCODER_WRITE_STATUS_OK
}
