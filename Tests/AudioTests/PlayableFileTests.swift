// Chunks as a player sees them: opusdec (opus-tools) decodes each to exactly its length.
import AudioFiles
import Foundation
import Support
import Testing

@testable import Audio

@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/opusdec")))
struct PlayableFileTests {
    @Test func fullChunk_decodesToExactly30Seconds() throws {
        let segments = try encode(frames: 480_000)
        #expect(try decodedFrames(segments, frames: 480_000, preroll: []) == 1_440_000)
    }

    @Test func chunkWithPreroll_decodesToExactly30Seconds() throws {
        let segments = try encode(frames: 32_000 * 16)
        let preroll = SegmentPackets.split(segments[0].data).dropLast().suffix(4).map(Array.init)
        let chunk = Array(segments.dropFirst())
        #expect(try decodedFrames(chunk, frames: 480_000, preroll: preroll) == 1_440_000)
    }

    @Test(arguments: [1, 31_897, 32_001, 32_319, 50_000])
    func shortTail_decodesToExactlyItsLength(frames: Int) throws {
        let segments = try encode(frames: frames)
        #expect(try decodedFrames(segments, frames: frames, preroll: []) == frames * 3)
    }

    private func encode(frames: Int) throws -> [EncodedSegment] {
        let encoder = try OpusSegmentEncoder(rate: 16_000, bitrate: 24_000, segmentFrames: 32_000)
        return try encoder.encode(tone(frames: frames)[...]) + encoder.finish()
    }

    /// Frames at 48 kHz that opusdec makes of the chunk.
    private func decodedFrames(
        _ segments: [EncodedSegment],
        frames: Int,
        preroll: [[UInt8]]
    ) throws -> Int {
        var file = OggOpusFile(
            serial: 1,
            rate: 16_000,
            frames: frames,
            preskip: 104,
            prerollPackets: preroll.count
        )
        var bytes = file.headers()
        for packet in preroll { bytes += file.append(packet[...]) }
        for (index, segment) in segments.enumerated() {
            let packets = SegmentPackets.split(segment.data)
            let isLast = index == segments.count - 1
            for packet in isLast ? packets[...] : packets.dropLast() {
                bytes += file.append(packet)
            }
        }
        bytes += file.finish()
        return try opusdec(bytes).count / 2
    }

    private func opusdec(_ bytes: [UInt8]) throws -> Data {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("waypost-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let input = folder.appendingPathComponent("chunk.ogg")
        let output = folder.appendingPathComponent("chunk.raw")
        try Data(bytes).write(to: input)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/opusdec")
        process.arguments = ["--quiet", "--rate", "48000", input.path, output.path]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return try Data(contentsOf: output)
    }
}
