// 16-bit samples into a WAV file.

/// The header of a RIFF WAVE file of 16-bit PCM, one channel.
package enum WaveFile {
    package static func header(rate: Int, frames: Int) -> [UInt8] {
        let bytes = UInt32(clamping: frames * 2)
        let rate = UInt32(clamping: rate)
        return Array("RIFF".utf8) + littleEndian(bytes + 36) + Array("WAVEfmt ".utf8)
            + littleEndian(UInt32(16)) + littleEndian(UInt16(1)) + littleEndian(UInt16(1))
            + littleEndian(rate) + littleEndian(rate * 2) + littleEndian(UInt16(2))
            + littleEndian(UInt16(16)) + Array("data".utf8) + littleEndian(bytes)
    }
}
