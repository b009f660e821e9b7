import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
@testable import Records

/// State that survives a restart beside the records.
@Suite struct ContinuityTests {
    @Test func memo_isThereAfterAKill_onceSomethingWasCommitted() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        queue.remember("upload", "{}")
        queue.remember("upload", #"{"a":1}"#)
        queue.accept(testSighting(1))
        try queue.flushed()
        // As after a kill: the queue is never closed.
        let copy = TemporaryFolder()
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: folder.database + suffix,
                toPath: copy.database + suffix
            )
        }
        let after = try copy.queue()
        #expect(after.remembered("upload") == #"{"a":1}"#)
        after.close()
        queue.close()
    }

    /// A memo alone does not cause a commit; closing the queue does.
    @Test func memo_costsNoCommit_andIsThereAfterAStop() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        queue.checkStorage()
        try queue.flushed()
        let journal = URL(fileURLWithPath: folder.database + "-wal")
        let before = try Data(contentsOf: journal)
        for number in 0..<100 {
            queue.remember("upload", "\(number)")
            try queue.flushed()
        }
        #expect(try Data(contentsOf: journal) == before)
        queue.close()
        let after = try folder.queue()
        #expect(after.remembered("upload") == "99")
        after.close()
    }

    /// The memo of a `put` is stored with its records, whatever was remembered before.
    @Test func memoOfAPut_isInItsTransaction() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        queue.declare([DeclaredStream(name: "weather", wire: "weather")])
        queue.remember("session", "old")
        let outcome = Locked<[Bool]>([])
        let stamp = SystemClock().stamp()
        let record = UserRecord(stream: "weather", stamp: stamp, members: Array("\"a\":1".utf8))
        queue.put([record], memos: ["session": "new"]) { error in
            outcome.update { $0.append(error == nil) }
        }
        try waitUntil("the commit") { outcome.value == [true] }
        #expect(queue.remembered("session") == "new")
        let copy = TemporaryFolder()
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: folder.database + suffix,
                toPath: copy.database + suffix
            )
        }
        let after = try copy.queue()
        #expect(after.remembered("session") == "new")
        after.close()
        // Also without a record: a new session at a broker.
        queue.put([], memos: ["session": "empty"]) { error in
            outcome.update { $0.append(error == nil) }
        }
        try waitUntil("its commit") { outcome.value == [true, true] }
        // A record of no stream stores nothing.
        let other = UserRecord(stream: "wind", stamp: stamp, members: [])
        queue.put([other], memos: ["session": "lost"]) { error in
            outcome.update { $0.append(error == nil) }
        }
        #expect(outcome.value == [true, true, false])
        queue.close()
        let last = try folder.queue()
        #expect(last.remembered("session") == "empty")
        last.close()
    }

    @Test func memo_goesIntoTheDatabaseThatFollowsADamagedOne() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        queue.remember("upload", "kept")
        queue.accept(testSighting(1))
        try queue.flushed()
        queue.reportDamage("a test", generation: queue.generation)
        try waitUntil("the new database") { queue.generation == 2 }
        queue.close()
        let after = try folder.queue()
        #expect(after.remembered("upload") == "kept")
        after.close()
    }

    private func reading(_ number: Int64, at stamp: Stamp) -> Sighting {
        var sighting = testSighting(Int(number))
        sighting.telemetry.add(.temperature, scaled: number)
        sighting.telemetry.add(.mark, scaled: number << 3)
        sighting.stamp = stamp
        return sighting
    }

    /// Only of this boot, and of the last ten minutes.
    @Test func readingsOfThisBoot_areFoundAfterARestart() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        queue.accept(reading(1, at: clock.stamp()))
        clock.advance(by: .seconds(601))
        queue.accept(testSighting(2))
        queue.accept(reading(3, at: clock.stamp()))
        queue.close()
        let after = try folder.queue(clock: clock)
        let found = after.recentReadings()
        #expect(found.map { $0.telemetry.mark } == [24])
        #expect(found.first?.telemetry.readings.map(\.quantity) == [.temperature])
        after.close()
    }

    @Test func sourceStart_waitsBoundedTime_ifTheDiskHangs() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 16_000, device: "d")
        let (isIn, mayGo) = (try Wakeup(), try Wakeup())
        let thread = try OwnThread("hang") {
            _ = try? queue.perform { _ in
                isIn.signal()
                var entries = [PollEntry(mayGo.descriptor)]
                _ = wait(for: &entries)
            }
        }
        var entries = [PollEntry(isIn.descriptor)]
        #expect(wait(for: &entries, timeout: .seconds(60)) == 1)
        queue.begin(run)
        queue.accept(
            Segment(run: run.id, frames: 16_000, start: testStart, meanSquare: 0, data: [1])
        )
        // Both return, though nothing is written.
        #expect(queue.recentReadings().isEmpty)
        #expect(queue.endOfAudio() == testStart.advanced(by: .seconds(1)))
        mayGo.signal()
        thread.join()
        queue.close()
    }

    @Test func endOfSound_isThatOfTheLastSegment_ofThisBoot() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        #expect(queue.endOfAudio() == nil)
        let run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 16_000, device: "d")
        queue.begin(run)
        queue.accept(
            Segment(run: run.id, frames: 24_000, start: testStart, meanSquare: 0, data: [1])
        )
        #expect(queue.endOfAudio() == testStart.advanced(by: .milliseconds(1500)))
        queue.close()
        let after = try Queue(at: folder.database, bootID: "another") {
            $0.isTurnedByHand = true
        }
        #expect(after.endOfAudio() == nil)
        after.close()
    }

    /// Records four seconds of silence, in chunks of two that are too quiet to be kept.
    private func recordQuietly(_ queue: Queue, minimumLevel: Double?) -> Stamp {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "d",
            chunkSegments: 2,
            overlapSegments: 0,
            minimumLevel: minimumLevel
        )
        queue.begin(run)
        for number in 0..<5 {
            let start = testStart.advanced(by: .seconds(number))
            queue.accept(
                Segment(run: run.id, frames: 16_000, start: start, meanSquare: 0, data: [1])
            )
        }
        queue.end(run: run.id)
        return testStart.advanced(by: .seconds(5))
    }

    /// After a quiet night its end is not that of the last loud chunk, hours before.
    @Test func endOfAudio_includesDiscardedQuietAudio() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let end = recordQuietly(queue, minimumLevel: -30)
        queue.close()
        let after = try folder.queue()
        #expect(after.pending(.audio) == nil)
        #expect(after.endOfAudio() == end)
        after.close()
    }

    /// A microphone is away for longer than uploaded audio is kept.
    @Test func endOfSound_isKnown_whenAllOfItIsUploadedAndGone() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let end = recordQuietly(queue, minimumLevel: nil)
        let range = try #require(try queue.flushed().pending(.audio))
        try queue.perform { writer in
            try writer.uploaded(try #require(try writer.freeze(range, through: range.last)))
            while try writer.purge(retention: .zero) {}
        }
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM segments") == 0)
        let after = try folder.queue()
        #expect(after.endOfAudio() == end)
        after.close()
        let reboot = try folder.queue(bootID: "another")
        #expect(reboot.endOfAudio() == nil)
        reboot.close()
    }
}
