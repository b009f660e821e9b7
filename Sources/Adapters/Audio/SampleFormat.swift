// The sample formats of devices.
import Host
import CALSA

/// A supported sample format, little-endian; the cases are in order of preference.
enum SampleFormat: CaseIterable {
    case int16
    case int32
    case int24packed
    case int24
    case float

    /// libasound's constant for the format.
    var alsa: snd_pcm_format_t {
        switch self {
        case .int16: SND_PCM_FORMAT_S16_LE
        case .int32: SND_PCM_FORMAT_S32_LE
        case .int24packed: SND_PCM_FORMAT_S24_3LE
        case .int24: SND_PCM_FORMAT_S24_LE
        case .float: SND_PCM_FORMAT_FLOAT_LE
        }
    }

    /// Bytes per sample.
    var width: Int {
        switch self {
        case .int16: 2
        case .int24packed: 3
        case .int32, .int24, .float: 4
        }
    }

    /// Appends one channel (counted from 0) of `frames` frames; full scale is 1.
    func append(
        _ raw: UnsafeRawBufferPointer,
        frames: Int,
        channel: Int,
        of channels: Int,
        to values: inout [Float]
    ) {
        mustHold(frames * channels * width <= raw.count, "frames lie in the buffer")
        for frame in 0..<frames {
            values.append(value(raw, at: (frame * channels + channel) * width))
        }
    }

    /// Returns the first channel (counted from 0) with a signal.
    func firstWithAudio(_ raw: UnsafeRawBufferPointer, frames: Int, channels: Int) -> Int? {
        (0..<channels).first { channel in
            let values = (0..<frames).lazy.map { frame in
                value(raw, at: (frame * channels + channel) * width)
            }
            return SampleSums(values: values).hasSignal
        }
    }

    private func value(_ raw: UnsafeRawBufferPointer, at offset: Int) -> Float {
        switch self {
        case .int16:
            return Float(
                Int16(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Int16.self))
            )
                / 32_768
        case .int24packed:
            let low = Int32(raw[offset]) | Int32(raw[offset + 1]) << 8
            let high = Int32(Int8(bitPattern: raw[offset + 2])) << 16
            return Float(high | low) / 8_388_608
        case .int24:
            // The upper byte is undefined.
            return Float(word(raw, at: offset) << 8) / 2_147_483_648
        case .int32:
            return Float(word(raw, at: offset)) / 2_147_483_648
        case .float:
            let value = Float(bitPattern: UInt32(bitPattern: word(raw, at: offset)))
            return value.isFinite ? value : 0
        }
    }

    private func word(_ raw: UnsafeRawBufferPointer, at offset: Int) -> Int32 {
        Int32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Int32.self))
    }
}
