// Writes the header of a WAV file.
import Host

/// Makes headers of RIFF WAVE files of 16-bit PCM, one channel.
package enum WaveFile {
    package static func header(rate: Int, frames: Int) -> [UInt8] {
        // Sizes in the header are limited to 4 GiB.
        let bytes = UInt32(clamping: min(max(0, frames), Int(UInt32.max - 36) / 2) * 2)
        let rate = UInt32(clamping: rate)
        return Array("RIFF".utf8) + littleEndian(bytes + 36) + Array("WAVEfmt ".utf8)
            + littleEndian(UInt32(16)) + littleEndian(UInt16(1)) + littleEndian(UInt16(1))
            + littleEndian(rate) + littleEndian(rate &* 2) + littleEndian(UInt16(2))
            + littleEndian(UInt16(16)) + Array("data".utf8) + littleEndian(bytes)
    }
}
