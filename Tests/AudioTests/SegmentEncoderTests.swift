// Segments of an unbroken run: none lost, none twice, decodable from any segment.
import AudioFiles
import COpus
import Testing

@testable import Audio

@Suite struct SegmentEncoderTests {
    @Test(arguments: [1, 160, 320, 1600, 33_333])
    func wav_keepsEverySample_howeverItComes(step: Int) throws {
        let sound = tone(frames: 70_001)
        let segments = try encode(sound, with: PCMEncoder(segmentFrames: 32_000), step: step)
        #expect(segments.map(\.frames) == [32_000, 32_000, 6001])
        #expect(segments.flatMap(\.data) == bytes(sound))
    }

    @Test func wav_measuresTheLevel() throws {
        let square = (0..<32_000).map { $0 % 2 == 0 ? Int16(16_384) : -16_384 }
        let segments = try encode(square, with: PCMEncoder(segmentFrames: 32_000), step: 320)
        #expect(segments.map(\.meanSquare) == [0.25])
    }

    @Test func opus_sharesThePacketAtEachBoundary() throws {
        let segments = try encode(tone(frames: 70_000), with: opus(), step: 1600)
        let packets = segments.map { SegmentPackets.split($0.data).map(Array.init) }
        #expect(packets.dropLast().map(\.count) == [101, 101])
        #expect(packets[0].last == packets[1].first)
        #expect(packets[1].last == packets[2].first)
    }

    @Test(arguments: [1, 319, 320, 31_896, 31_897, 31_999, 32_000, 32_001, 32_319, 32_320, 40_000])
    func opus_endOfRun_losesNothingAndAddsNothing(frames: Int) throws {
        let encoder = try opus()
        let segments = try encode(tone(frames: frames), with: encoder, step: 1600)
        #expect(segments.reduce(0) { $0 + $1.frames } == frames)
        for segment in segments {
            let packets = SegmentPackets.split(segment.data).count
            #expect(packets * 320 >= segment.frames + encoder.preskip)
        }
    }

    @Test func opus_runDecodesToTheSourceWithoutOffset() throws {
        let sound = tone(frames: 480_000)
        let encoder = try opus()
        let segments = try encode(sound, with: encoder, step: 1600)
        #expect(segments.count == 15)
        let decoded = try decode(packets(of: segments)).dropFirst(encoder.preskip).prefix(480_000)
        try #require(decoded.count == 480_000)
        #expect(bestOffset(Array(decoded), sound, within: 40) == 0)
        #expect(correlation(Array(decoded), sound, offset: 0) > 0.99)
    }

    @Test func opus_overlapOfNeighbours_isTheSameSound() throws {
        let encoder = try opus()
        let segments = try encode(tone(frames: 32_000 * 16), with: encoder, step: 1600)
        // The second chunk begins with the first one's last segment, and with a fresh decoder.
        let first = try decode(packets(of: Array(segments[0..<15])))
        let preroll = SegmentPackets.split(segments[13].data).dropLast().suffix(4).map(Array.init)
        let second = try decode(preroll + packets(of: Array(segments[14..<16])))
        let left = Array(first.dropFirst(encoder.preskip + 14 * 32_000).prefix(32_000))
        let right = Array(second.dropFirst(encoder.preskip + 4 * 320).prefix(32_000))
        try #require(left.count == 32_000 && right.count == 32_000)
        #expect(bestOffset(left, right, within: 40) == 0)
        #expect(correlation(left, right, offset: 0) > 0.99)
    }

    private func opus() throws -> OpusSegmentEncoder {
        try OpusSegmentEncoder(rate: 16_000, bitrate: 24_000, segmentFrames: 32_000)
    }

    private func encode(
        _ samples: [Int16],
        with encoder: any SegmentEncoder,
        step: Int
    ) throws -> [EncodedSegment] {
        var segments: [EncodedSegment] = []
        for start in stride(from: 0, to: samples.count, by: step) {
            segments += try encoder.encode(samples[start..<min(samples.count, start + step)])
        }
        return try segments + encoder.finish()
    }

    /// The packets of neighbouring segments, each once.
    private func packets(of segments: [EncodedSegment]) -> [[UInt8]] {
        segments.enumerated().flatMap { index, segment in
            let packets = SegmentPackets.split(segment.data).map(Array.init)
            return index < segments.count - 1 ? packets.dropLast() : packets
        }
    }

    private func decode(_ packets: [[UInt8]]) throws -> [Int16] {
        let decoder = try #require(opus_decoder_create(16_000, 1, nil))
        defer { opus_decoder_destroy(decoder) }
        var samples: [Int16] = []
        for packet in packets {
            var block = [Int16](repeating: 0, count: 320)
            try #require(
                opus_decode(decoder, packet, Int32(packet.count), &block, 320, 0) == 320
            )
            samples += block
        }
        return samples
    }

    private func correlation(_ left: [Int16], _ right: [Int16], offset: Int) -> Double {
        var product = 0.0
        var leftPower = 0.0
        var rightPower = 0.0
        for index in max(0, -offset)..<min(left.count, right.count - max(0, offset)) {
            let a = Double(left[index])
            let b = Double(right[index + offset])
            product += a * b
            leftPower += a * a
            rightPower += b * b
        }
        return product / max(1, (leftPower * rightPower).squareRoot())
    }

    /// The shift of `right` at which the two are most alike, over the first two seconds.
    private func bestOffset(_ left: [Int16], _ right: [Int16], within limit: Int) -> Int? {
        let left = Array(left.prefix(32_000))
        let right = Array(right.prefix(32_000))
        return (-limit...limit).max {
            correlation(left, right, offset: $0) < correlation(left, right, offset: $1)
        }
    }
}
