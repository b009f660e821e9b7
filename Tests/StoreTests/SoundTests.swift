import Foundation
import Host
import Store
import Testing

@Suite struct SoundTests {
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_235_407_000)
    )

    /// Chunks of 4 segments of 2 s with one shared, to keep the tests short.
    private func run(_ queue: Queue, minimumLevel: Double? = nil) -> AudioRun {
        AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "test",
            chunkSegments: 4,
            overlapSegments: 1,
            minimumLevel: minimumLevel
        )
    }

    private func segment(_ run: AudioRun, _ number: Int, frames: Int = 32_000) -> Segment {
        Segment(
            run: run.id,
            frames: frames,
            start: Self.start.advanced(by: .seconds(2 * number)),
            meanSquare: 0.01,
            data: [UInt8](repeating: UInt8(number), count: 8)
        )
    }

    private func chunks(_ queue: Queue) throws -> [[Int64]] {
        _ = try queue.perform { try $0.pending(.audio) }
        var chunks: [[Int64]] = []
        try queue.reader().chunks(1...100) {
            let chunk = $0.record
            chunks.append([chunk.firstSegment, Int64(chunk.segments), Int64(chunk.overlapFrames)])
        }
        return chunks
    }

    @Test func chunks_shareASegmentWithTheirNeighbour() throws {
        let folder = try TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<10 { queue.accept(segment(run, number)) }
        #expect(try chunks(queue) == [[1, 4, 0], [4, 4, 32_000], [7, 4, 32_000]])
        queue.close()
    }

    @Test func endOfRun_keepsTheShortTail_andTheNextRunStartsWithoutOverlap() throws {
        let folder = try TemporaryFolder()
        let queue = try folder.queue()
        let first = run(queue)
        queue.begin(first)
        for number in 0..<5 { queue.accept(segment(first, number)) }
        queue.accept(segment(first, 5, frames: 100))
        queue.end(run: first.id)
        let second = run(queue)
        queue.begin(second)
        for number in 10..<14 { queue.accept(segment(second, number)) }
        #expect(try chunks(queue) == [[1, 4, 0], [4, 3, 32_000], [7, 4, 0]])
        queue.close()
    }

    /// A device whose clock is 1000 ppm slow: a segment of 2 s of frames takes 2002 ms.
    @Test func span_isRealTime_whereDurationIsFrames() throws {
        let folder = try TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<4 {
            var segment = segment(run, number)
            segment.start = Self.start.advanced(by: .milliseconds(2002 * number))
            queue.accept(segment)
        }
        _ = try queue.perform { try $0.pending(.audio) }
        var spans: [[Int64?]] = []
        try queue.reader().chunks(1...100) { spans.append([$0.record.duration, $0.record.span]) }
        #expect(spans == [[8000, 8006]])
        queue.close()
    }

    @Test func endOfRun_withNothingNew_makesNoChunk() throws {
        let folder = try TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<4 { queue.accept(segment(run, number)) }
        queue.end(run: run.id)
        #expect(try chunks(queue) == [[1, 4, 0]])
        queue.close()
    }

    @Test func crash_leavesSegmentsThatBecomeAChunkAtTheNextStart() throws {
        let folder = try TemporaryFolder()
        var queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<6 { queue.accept(segment(run, number)) }
        // Closing without an end of the run is what a crash looks like to the database.
        queue.close()
        queue = try folder.queue()
        #expect(try chunks(queue) == [[1, 4, 0], [4, 3, 32_000]])
        #expect(queue.newRunID() > run.id)
        queue.close()
    }

    @Test func quietChunks_areCountedAndNotKept() throws {
        let folder = try TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue, minimumLevel: -10)
        queue.begin(run)
        for number in 0..<4 { queue.accept(segment(run, number)) }
        #expect(try chunks(queue) == [])
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT not_kept FROM streams WHERE id=2") == 1)
    }

    @Test func level_ofAFullScaleSquareIsZero_andSilenceHasAFloor() {
        #expect(SoundLevel.decibels(1) == 0)
        #expect(abs(SoundLevel.decibels(0.01) + 20) < 1e-9)
        #expect(SoundLevel.decibels(0) == -120)
    }
}
