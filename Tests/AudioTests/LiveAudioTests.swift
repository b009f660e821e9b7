// The samples that programs get which listen to a recording: those stored, dated as the stored chunks.
import Configuration
import Host
import Records
import SourceSupport
import Support
import Testing

@testable import Audio

@Suite struct LiveAudioTests {
    private let tap: AudioTap
    private let sink: RecordingSink
    private let capture: Capture
    private let sound = tone(frames: 16_000 * 40)

    /// Chunks of 6 s that overlap by 2 s, in segments of 1 s.
    init() throws {
        tap = try AudioTap()
        sink = RecordingSink(tap: tap)
        var settings = AudioSettings { $0.devices = ["test"] }
        (settings.codec, settings.chunk, settings.overlap) = (.wav, .seconds(6), .seconds(2))
        capture = try Capture(settings: settings, device: "test", deviceRate: 16_000, sink: sink)
    }

    /// Captures from sample `from` on, read by read, by a device that is 200 ppm slow.
    private func record(reads: Int, from: inout Int) throws -> [Segment] {
        var segments: [Segment] = []
        for _ in 0..<reads {
            let count = capture.missing
            let time = Int64(Double(from + count) / 16_000 * 1.0002 * 1e9)
            let now = testStart.advanced(by: .nanoseconds(time))
            capture.observe(Position(captured: Int64(from + count), age: .zero, now: now))
            _ = capture.begin()
            segments += try capture.receive(sound[from..<(from + count)])
            from += count
        }
        return segments
    }

    private func read(_ next: inout UInt64) -> [AudioBlock] {
        var blocks: [AudioBlock] = []
        while let block = tap.read(&next, atMost: .max / 2) { blocks.append(block) }
        return blocks
    }

    @Test func blocks_areTheStoredSegments_datedByTheirChunk() throws {
        tap.set(open: true)
        var (at, next) = (0, tap.end)
        var (segments, blocks): ([Segment], [AudioBlock]) = ([], [])
        for _ in 0..<15 {
            segments += try record(reads: 1, from: &at)
            blocks += read(&next)
        }
        #expect(segments.count >= 13)
        #expect(blocks.map { bytes($0.samples) } == segments.map(\.data))
        for (number, block) in blocks.enumerated() {
            // A chunk begins with every fourth segment: 6 s less the overlap of 2 s.
            let chunk = number / 4 * 4
            #expect(block.run == 1)
            #expect(block.frame == Int64(number) * 16_000)
            #expect(block.chunkFrame == Int64(chunk) * 16_000)
            #expect(block.chunkStart == segments[chunk].start)
            #expect(block.offset == .seconds(number - chunk))
        }
        #expect(tap.skipLost(&next) == 0)
    }

    /// Somebody who comes in the middle gets the samples from then on, with their places.
    @Test func lateListener_getsTheRest() throws {
        var at = 0
        let before = try record(reads: 6, from: &at)
        tap.set(open: true)
        var next = tap.end
        let came = at
        _ = try record(reads: 4, from: &at)
        let blocks = read(&next)
        #expect(blocks.first?.frame == Int64(came))
        let samples = blocks.flatMap(\.samples)
        #expect(samples == Array(sound[came..<(came + samples.count)]))
        #expect(blocks.first?.chunkStart == before[4].start)
        tap.set(open: false)
        _ = try record(reads: 2, from: &at)
        #expect(!tap.isOpen)
    }
}
