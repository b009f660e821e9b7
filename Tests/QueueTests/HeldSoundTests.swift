// Sound that nobody has marked: on the card, not pending, and evicted first.
import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
@testable import Records

@Suite struct HeldSoundTests {
    /// A queue that holds sound; `birds` marks it, a second before and after each record.
    private func queue(
        _ folder: TemporaryFolder,
        _ mode: AudioUpload = .marked,
        limits: StorageLimits = StorageLimits(),
        bootID: String = "boot"
    ) throws -> Queue {
        try Queue(at: folder.database, bootID: bootID, clock: ManualClock(testStart)) {
            $0.userStreams = [DeclaredStream(name: "birds", wire: "birds")]
            $0.sound = StateBox(
                SoundUpload(mode, markingStreams: ["birds"], margin: .seconds(1))
            )
            $0.limits = limits
            $0.freeSpace = { _ in 1 << 40 }
        }
    }

    private func time(_ second: Double) -> Stamp {
        testStart.advanced(by: .milliseconds(Int64(second * 1000)))
    }

    /// Records chunks of 6 s from a second on; without an end, the last segment waits for the next one.
    @discardableResult
    private func record(
        _ queue: Queue,
        chunks: Int,
        from second: Int64 = 0,
        bytes: Int = 1000,
        ends: Bool = true
    ) throws -> AudioRun {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "test",
            chunkSegments: 3,
            overlapSegments: 0
        )
        queue.begin(run)
        for index in 0..<(3 * chunks) {
            try hear(queue, run, at: second + 2 * Int64(index), bytes: bytes)
        }
        if ends { queue.end(run: run.id) }
        try queue.flushed()
        return run
    }

    private func hear(_ queue: Queue, _ run: AudioRun, at second: Int64, bytes: Int = 1000) throws {
        queue.accept(
            Segment(
                run: run.id,
                frames: 32_000,
                start: time(Double(second)),
                meanSquare: 0.01,
                data: [UInt8](repeating: 1, count: bytes)
            )
        )
    }

    private func detect(_ queue: Queue, at second: Double, given: WallTime? = nil) throws {
        let record = UserRecord(
            stream: "birds",
            stamp: time(second),
            given: given,
            members: Array(#""species":"wren""#.utf8)
        )
        queue.put([record]) { error in #expect(error == nil) }
        try queue.flushed()
    }

    private func ask(_ queue: Queue, _ from: Double, _ to: Double) throws -> Int {
        try queue.perform { [self] in try $0.markSound(from: time(from).wall, to: time(to).wall) }
    }

    /// The chunks that the uploader takes, in its order, one in a batch.
    private func wanted(_ queue: Queue) throws -> [Int64] {
        var chunks: [Int64] = []
        while var range = queue.wantedSound(through: .max) {
            range.first = range.last
            let frozen = range
            _ = try queue.perform { try $0.freeze(frozen, through: frozen.last) }
            chunks.append(range.last)
        }
        return chunks
    }

    private func held(_ queue: Queue) -> [ClosedRange<Int64>] { queue.counters.memory.held.ranges }

    private func sound(_ queue: Queue) throws -> StreamStatistics {
        try #require(queue.statistics().first { $0.stream == .audio })
    }

    @Test func unmarkedSound_isHeldAndNotPending() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        try record(queue, chunks: 5)
        let figures = try sound(queue)
        #expect(figures.held == 5 && figures.pending == 0 && figures.accepted == 5)
        #expect(figures.heldBytes > 15_000 && figures.pendingBytes == 0)
        #expect(figures.heldSpan == time(0).wall...time(30).wall)
        #expect(queue.pending(.audio) == nil && queue.wantedSound(through: .max) == nil)
        #expect(try queue.unsent(.audio, through: 5) == 0)
        queue.close()
        // After a restart, too.
        let again = try self.queue(folder)
        #expect(try sound(again) == figures)
        try detect(again, at: 13)
        #expect(held(again) == [1...2, 4...5])
        #expect(try sound(again).heldBytes < figures.heldBytes)
        again.close()
    }

    /// Before the chunk, in it before it is complete, at its border, and twice.
    @Test func marks_releaseEachChunkOnce() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        let run = try record(queue, chunks: 4, ends: false)
        try detect(queue, at: 8)
        try detect(queue, at: 8.5)
        try detect(queue, at: 25.5)
        // At the border of the third and the fourth.
        try detect(queue, at: 18)
        for second in stride(from: 24, to: 48, by: 2) { try hear(queue, run, at: Int64(second)) }
        queue.end(run: run.id)
        try queue.flushed()
        #expect(held(queue) == [1...1, 6...8])
        #expect(try wanted(queue) == [5, 4, 3, 2])
        #expect(try queue.perform { try $0.marks() }.count <= 1)
        queue.close()
    }

    /// The mark of a chunk that a kill cut off is found by the next start.
    @Test func markOfAnUnfinishedChunk_survivesARestart() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        try record(queue, chunks: 1, ends: false)
        let run = try record(queue, chunks: 1, from: 100, ends: false)
        for second in [106, 108] { try hear(queue, run, at: Int64(second)) }
        try detect(queue, at: 107)
        // A stop without the end of the run.
        queue.close()
        let again = try self.queue(folder, bootID: "next")
        #expect(held(again) == [1...2])
        #expect(try wanted(again) == [3])
        again.close()
    }

    @Test func order_isDetectionsThenPeople_newestFirst() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        try record(queue, chunks: 9)
        #expect(try ask(queue, 1, 11) == 2)
        #expect(try ask(queue, 43, 53) == 2)
        try detect(queue, at: 27)
        try detect(queue, at: 15)
        // Asked for by a person before.
        try detect(queue, at: 3)
        #expect(try queue.perform { try $0.releaseNewest(1) })
        #expect(held(queue) == [4...4, 6...6])
        // 1, 3 and 5 were detected, 2, 8 and 9 asked for, and for 7 there is room.
        #expect(try wanted(queue) == [5, 3, 1, 9, 8, 7, 2])
        queue.close()
    }

    /// A person's span lasts over later chunks; a program dates its records by another clock than the boot's.
    @Test func wallTimes_areThoseSeenOrCorrected() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        let run = try record(queue, chunks: 3, ends: false)
        // The chunk before is of this clock; the clock is an hour ahead from now on.
        try detect(queue, at: 3, given: time(3).wall)
        let later = time(20)
        try queue.perform {
            try $0.recordClock(
                Stamp(boot: later.boot, wall: later.wall + .seconds(3600)),
                synced: true
            )
        }
        #expect(held(queue) == [2...3])
        #expect(try ask(queue, 3607, 3608) == 1)
        #expect(held(queue) == [3...3])
        // Until the end of what is not recorded yet.
        #expect(try ask(queue, 3619, 3640) == 0)
        for second in stride(from: 18, to: 60, by: 2) { try hear(queue, run, at: Int64(second)) }
        queue.end(run: run.id)
        try queue.flushed()
        #expect(held(queue) == [3...3, 8...10])
        queue.close()
    }

    @Test func markBeforeTheClockIsRight_isAppliedWhenItIs() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        try record(queue, chunks: 2, ends: false)
        #expect(try ask(queue, 3601, 3602) == 0)
        try queue.perform { [self] in
            let stamp = Stamp(boot: time(12).boot, wall: time(3612).wall)
            try $0.recordClock(stamp, synced: true)
        }
        #expect(held(queue) == [2...2])
        queue.close()
    }

    @Test func otherSettings_releaseEverythingOrNothing() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder, .none)
        try record(queue, chunks: 3)
        try detect(queue, at: 3)
        #expect(throws: SoundMarkError.self) { try ask(queue, 0, 10) }
        #expect(held(queue) == [1...3])
        queue.upload(SoundUpload(.marked))
        #expect(try ask(queue, 0, 5) == 1)
        queue.upload(SoundUpload(.all))
        #expect(try queue.flushed().pending(.audio)?.last == 3)
        #expect(held(queue).isEmpty)
        let figures = try sound(queue)
        #expect(figures.heldBytes == 0 && figures.pendingBytes > 9000)
        // New sound is pending, too.
        try record(queue, chunks: 1, from: 50)
        #expect(queue.pending(.audio)?.last == 4)
        queue.upload(SoundUpload(.marked))
        try record(queue, chunks: 1, from: 70)
        #expect(queue.pending(.audio)?.last == 4)
        #expect(held(queue) == [5...5])
        queue.close()
    }

    /// A start stores the release, and `none` also holds sound that was pending or that a person had marked.
    @Test func otherSettingsAtAStart_areStored() throws {
        let folder = TemporaryFolder()
        let marked = try queue(folder)
        try record(marked, chunks: 4)
        #expect(try ask(marked, 1, 2) == 1)
        marked.close()
        let all = try queue(folder, .all)
        let range = try #require(all.pending(.audio))
        #expect(range.last == 4)
        let batch = try #require(try all.perform { try $0.freeze(range, through: 2) })
        try all.perform { _ = try $0.uploaded(batch) }
        all.close()
        let none = try queue(folder, .none)
        #expect(held(none) == [3...4] && none.pending(.audio) == nil)
        #expect(try sound(none).uploaded == 2 && sound(none).accepted == 4)
        #expect(try none.perform { try $0.marks() }.isEmpty)
        none.close()
        let again = try queue(folder)
        #expect(held(again) == [3...4])
        again.close()
    }

    @Test func peoplesMarks_areFew() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        for number in 0..<64 {
            let hour = Double(1_000_000 + 3600 * number)
            #expect(try ask(queue, hour, hour + 60) == 0)
        }
        #expect(throws: SoundMarkError.self) { try ask(queue, 1, 2) }
        // It is one of them.
        #expect(try ask(queue, 1_000_030, 1_000_070) == 0)
        queue.close()
    }

    /// It is evicted before everything else that waits, the oldest first, and counted in the ledger.
    @Test func heldSound_isEvictedFirst() throws {
        let folder = TemporaryFolder()
        let limits = StorageLimits(maxSize: 2 << 20)
        let queue = try queue(folder, limits: limits)
        for number in 0..<500 { queue.accept(testSighting(number)) }
        for part in 0..<50 {
            try record(queue, chunks: 2, from: Int64(part) * 12, bytes: 10_000)
            queue.checkStorage()
        }
        try queue.flushed()
        let figures = try sound(queue)
        #expect(figures.evicted > 0 && figures.pending == 0)
        #expect(figures.held + figures.evicted == 100)
        #expect(held(queue).count == 1 && held(queue).last?.upperBound == 100)
        #expect(queue.pending(.beacons)?.first == 1 && queue.pending(.beacons)?.last == 500)
        #expect(try queue.losses().contains { $0.stream == .audio && $0.kind == .unmarked })
        let stored = try queue.perform { writer in
            try writer.memory.held.ranges.reduce(0) {
                try $0 + writer.storedBytes(Partition(.audio), $1)
            }
        }
        #expect(figures.heldBytes == Int(stored))
        queue.close()
    }

    /// It must not be uploaded from there, and nothing can mark it: it is recorded as lost.
    @Test func heldSoundOfADamagedDatabase_isGivenUp() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        try record(queue, chunks: 4)
        try detect(queue, at: 9)
        try queue.damage()
        #expect(queue.pending(.audio)?.first == 2 && queue.pending(.audio)?.last == 2)
        let corrupt = try queue.losses().filter { $0.stream == .audio && $0.kind == .corrupt }
        #expect(corrupt.map(\.records) == [3])
        #expect(try sound(queue).held == 0)
        queue.close()
    }

    /// A chorus is one row, and marks without sound leave none.
    @Test func marks_stayFew() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        for second in 0..<100 { try detect(queue, at: Double(10 * second)) }
        #expect(try queue.perform { try $0.marks() }.count == 1)
        try record(queue, chunks: 1, from: 2000, ends: false)
        for second in 0..<100 { try detect(queue, at: 2010 + Double(second)) }
        #expect(try queue.perform { try $0.marks() }.count == 1)
        queue.close()
    }
}
