// The WAV header, byte for byte.
import Testing

@testable import Containers

@Suite struct WaveFileTests {
    @Test func header_describes16BitMono() {
        let expected: [UInt8] =
            Array("RIFF".utf8) + [0x24, 0xA6, 0x0E, 0x00] + Array("WAVEfmt ".utf8) + [
                16, 0, 0, 0, 1, 0, 1, 0, 0x80, 0x3E, 0, 0, 0x00, 0x7D, 0, 0, 2, 0, 16, 0,
            ] + Array("data".utf8) + [0x00, 0xA6, 0x0E, 0x00]
        #expect(WaveFile.header(rate: 16_000, frames: 480_000) == expected)
    }

    @Test func header_survivesAbsurdSizes() {
        #expect(WaveFile.header(rate: 16_000, frames: 1 << 40).count == 44)
        #expect(WaveFile.header(rate: -1, frames: -1).count == 44)
    }
}
