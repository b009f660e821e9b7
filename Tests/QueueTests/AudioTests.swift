import Foundation
import Host
@testable import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

@Suite struct AudioTests {
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_235_407_000)
    )

    /// Chunks of 4 segments of 2 s with one shared, to keep the tests short.
    private func run(
        _ queue: Queue,
        minimumLevel: Double? = nil,
        overlapSegments: Int = 1
    ) -> AudioRun {
        AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "test",
            chunkSegments: 4,
            overlapSegments: overlapSegments,
            minimumLevel: minimumLevel
        )
    }

    private func segment(
        _ run: AudioRun,
        _ number: Int,
        frames: Int = 32_000,
        meanSquare: Double = 0.01
    ) -> Segment {
        Segment(
            run: run.id,
            frames: frames,
            start: Self.start.advanced(by: .seconds(2 * number)),
            meanSquare: meanSquare,
            data: [UInt8](repeating: UInt8(number), count: 8)
        )
    }

    private func chunks(_ queue: Queue) throws -> [[Int64]] {
        _ = try queue.flushed().pending(.audio)
        var chunks: [[Int64]] = []
        try queue.reader().chunksThere(1...100) {
            let chunk = $0.record
            chunks.append([chunk.firstSegment, Int64(chunk.segments), Int64(chunk.overlapFrames)])
        }
        return chunks
    }

    @Test func chunks_shareASegmentWithTheirNeighbour() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<10 { queue.accept(segment(run, number)) }
        #expect(try chunks(queue) == [[1, 4, 0], [4, 4, 32_000], [7, 4, 32_000]])
        queue.close()
    }

    /// A reader trims what `overlap_duration` says: it would lose the only copy of that second.
    @Test func chunkAfterEvictedOne_hasNoOverlap_unlessFrozen() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<13 { queue.accept(segment(run, number)) }
        try queue.flushed()
        func evict() throws {
            try queue.perform { writer in
                writer.evictionBytes = 1
                _ = try writer.evictPending()
            }
        }
        try evict()
        #expect(try chunks(queue) == [[4, 4, 0], [7, 4, 32_000], [10, 4, 32_000]])
        // The bytes of a frozen batch stay.
        try queue.perform { writer in
            let range = try #require(try writer.pending(.audio))
            var next = range
            next.first = 3
            _ = try writer.freeze(next, through: 3)
        }
        try evict()
        #expect(try chunks(queue) == [[7, 4, 32_000], [10, 4, 32_000]])
        // The newest chunk, whose neighbour is not complete yet.
        try evict()
        #expect(try chunks(queue) == [[7, 4, 32_000]])
        for number in 13..<16 { queue.accept(segment(run, number)) }
        #expect(try chunks(queue) == [[7, 4, 32_000], [13, 4, 0]])
        try checkSum(queue)
        queue.close()
    }

    /// A chunk on a damaged page is not there either.
    @Test func chunkAfterADamagedOne_sharesNothing() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<10 { queue.accept(segment(run, number)) }
        try queue.flushed()
        try queue.perform { writer in
            let range = try #require(try writer.pending(.audio))
            let batch = try #require(try writer.freeze(range, through: 1))
            try writer.lose(1, of: batch)
        }
        #expect(try chunks(queue) == [[4, 4, 0], [7, 4, 32_000]])
        try checkSum(queue)
        queue.close()
    }

    @Test func tailAfterAnEvictedChunk_sharesNothing_afterACrash() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<6 { queue.accept(segment(run, number)) }
        try queue.flushed()
        _ = try queue.perform { try $0.evictPending() }
        let copy = TemporaryFolder()
        for end in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: folder.database + end,
                toPath: copy.database + end
            )
        }
        let next = try copy.queue()
        #expect(try chunks(next) == [[4, 3, 0]])
        try checkSum(next)
        next.close()
        queue.close()
    }

    @Test func runEnd_keepsTheShortTail_andNextRunHasNoOverlap() throws {
        let folder = TemporaryFolder()
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

    /// A device whose clock is 1000 ppm slow: the frames of a 2 s segment take 2002 ms.
    @Test func span_isRealTime_whereDurationIsFrames() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<4 {
            var segment = segment(run, number)
            segment.start = Self.start.advanced(by: .milliseconds(2002 * number))
            queue.accept(segment)
        }
        _ = try queue.flushed().pending(.audio)
        var spans: [[Int64?]] = []
        try queue.reader().chunksThere(1...100) {
            spans.append([$0.record.duration, $0.record.span])
        }
        #expect(spans == [[8000, 8006]])
        queue.close()
    }

    @Test func endOfRun_withNothingNew_makesNoChunk() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<4 { queue.accept(segment(run, number)) }
        queue.end(run: run.id)
        #expect(try chunks(queue) == [[1, 4, 0]])
        queue.close()
    }

    @Test func crash_leavesSegmentsThatBecomeAChunkAtTheNextStart() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        let run = run(queue)
        queue.begin(run)
        for number in 0..<6 { queue.accept(segment(run, number)) }
        // Closing without ending the run looks like a crash to the database.
        queue.close()
        queue = try folder.queue()
        #expect(try chunks(queue) == [[1, 4, 0], [4, 3, 32_000]])
        queue.close()
    }

    @Test func quietChunks_areCountedAndNotKept() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue, minimumLevel: -10)
        queue.begin(run)
        for number in 0..<4 { queue.accept(segment(run, number)) }
        #expect(try chunks(queue) == [])
        queue.close()
        let queue2 = try folder.queue()
        #expect(try queue2.flushed().statistics().map(\.notKept) == [0, 0, 0, 0, 0, 0, 0, 1])
        queue2.close()
    }

    @Test func chunkAfterAQuietOne_hasNoOverlap() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = run(queue, minimumLevel: -30)
        queue.begin(run)
        // Chunks of segments 1…4, 4…7, 7…10, 10…13: loud, quiet, loud, loud.
        for number in 0..<13 {
            queue.accept(segment(run, number, meanSquare: (3...6).contains(number) ? 0 : 0.01))
        }
        #expect(try chunks(queue) == [[1, 4, 0], [7, 4, 0], [10, 4, 32_000]])
        // The quiet chunk leaves only segments that its neighbours share or decode from.
        #expect(try segments(folder) == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13])
        queue.close()
    }

    @Test func quietTail_isDropped_butLaterAudioSurvivesACrash() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        let run = run(queue, minimumLevel: -30)
        queue.begin(run)
        for number in 0..<9 {
            queue.accept(segment(run, number, meanSquare: (3...6).contains(number) ? 0 : 0.01))
        }
        // A crash: segments 8 and 9 are in no chunk, 5 was deleted with the quiet one.
        queue.close()
        queue = try folder.queue()
        let found = try chunks(queue)
        #expect(found.count == 2)
        #expect(found.first == [1, 4, 0])
        let tail = try #require(found.last)
        #expect(tail[0] + tail[1] - 1 == 9)
        #expect(tail[2] == 0)
        let present = try segments(folder)
        for id in tail[0]..<(tail[0] + tail[1]) { #expect(present.contains(id)) }
        queue.close()
    }

    /// As when another device takes over at the end of a chunk.
    @Test(arguments: [0, 1])
    func runThatEndsBehindAQuietChunk_leavesNothingOfIt(overlap: Int) throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for isLoud in [true, false] {
            let run = run(queue, minimumLevel: -30, overlapSegments: overlap)
            queue.begin(run)
            // Two chunks; the first may be loud.
            for number in 0..<(8 - overlap) {
                let level = isLoud && number < 3 ? 0.01 : 0
                queue.accept(segment(run, number, meanSquare: level))
            }
            queue.end(run: run.id)
        }
        #expect(try chunks(queue) == [[1, 4, 0]])
        #expect(try segments(folder) == [1, 2, 3, 4])
        queue.close()
    }

    /// A power cut in the first minute of a run must not delay the next start by minutes: a card
    /// reads a few MB per second.
    @Test func startAfterChunklessRun_readsNoEarlierRuns() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<20 { record(queue, segments: 60, from: number * 60) }
        let last = run(queue)
        queue.begin(last)
        for number in 0..<2 { queue.accept(segment(last, number)) }
        queue.close()
        let settings = QueueSettings(at: folder.database)
        let before = try bytesRead()
        let writer = try Writer(settings, user: [])
        #expect(try bytesRead() - before < FileSpace.size(folder.database) / 20)
        let tail = "SELECT segments FROM chunks ORDER BY id DESC LIMIT 1"
        #expect(try writer.connection.integer(tail) == 2)
    }

    /// Returns the bytes read by this thread (proc(5)).
    private func bytesRead() throws -> Int64 {
        let text = try #require(SmallText.read("/proc/thread-self/io"))
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("rchar:") })
        return try #require(Int64(line.dropFirst(7)))
    }

    private func segments(_ folder: TemporaryFolder) throws -> [Int64] {
        let database = try Connection(path: folder.database, access: .readOnly)
        let rows = try database.prepare("SELECT id FROM segments ORDER BY id")
        var ids: [Int64] = []
        while try rows.step() { ids.append(rows.required(0)) }
        return ids
    }

    @Test func level_ofAFullScaleSquareIsZero_andSilenceHasAFloor() {
        #expect(AudioLevel.decibels(1) == 0)
        #expect(abs(AudioLevel.decibels(0.01) + 20) < 1e-9)
        #expect(AudioLevel.decibels(0) == -120)
    }
}
