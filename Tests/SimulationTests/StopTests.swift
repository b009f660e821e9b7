import Host
import SimulatedDisk
import Testing

@testable import Queue
import QueueSupport
@testable import Records
@testable import Simulation

/// A stop while the disk refuses: the content of memory is lost, and that is reported.
@Suite struct StopTests {
    private let start = Stamp(
        boot: BootInstant(nanoseconds: 5_000_000_000),
        wall: WallTime(milliseconds: 1_790_000_000_000)
    )

    private func queue(
        _ disk: SimulatedDisk,
        memory: Int = 1000,
        clock: ManualClock? = nil
    ) throws -> Queue {
        try Queue(at: "/state/queue.sqlite") {
            $0.memoryLimit = memory
            $0.disk = DiskAdapter(disk: disk)
            $0.clock = clock ?? ManualClock(start)
            $0.isTurnedByHand = true
        }
    }

    private func event(_ name: String) -> Event {
        Event(.started, source: name, stamp: start)
    }

    @Test func stopOnADiskThatRefuses_returnsWhatIsLost() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        queue.accept(event("kept"))
        queue.turn()
        try queue.flushed()
        disk.isReadOnly = true
        for number in 0..<5 { queue.accept(event("lost \(number)")) }
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "d",
            chunkSegments: 30,
            overlapSegments: 2
        )
        queue.begin(run)
        for _ in 0..<60 {
            queue.accept(
                Segment(run: run.id, frames: 16_000, start: start, meanSquare: 0, data: [1])
            )
        }
        queue.turn()
        // Not even taken from the mailbox.
        queue.accept(event("last"))
        let lost = queue.close()
        #expect(lost.first { $0.stream == .events }?.records == 6)
        #expect(lost.first { $0.stream == .audio }?.records == 3)

        disk.isReadOnly = false
        let after = try self.queue(disk)
        for loss in lost { after.record(loss) }
        try after.flushed()
        #expect(try after.losses().first { $0.stream == .events }?.records == 6)
        #expect(after.close().isEmpty)
    }

    /// Memory has room for two of five segments, and none comes after them that would show the hole.
    @Test func segmentsWithoutRoom_areAmongWhatAStopReturns() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk, memory: 2)
        disk.isReadOnly = true
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 10,
            device: "d",
            chunkSegments: 1,
            overlapSegments: 0
        )
        queue.begin(run)
        for _ in 0..<5 {
            queue.accept(Segment(run: run.id, frames: 10, start: start, meanSquare: 0, data: [1]))
        }
        queue.end(run: run.id)
        queue.turn()
        #expect(queue.close().first { $0.stream == .audio }?.records == 5)
    }

    // MARK: Events that report a loss

    /// Ten minutes of sound that was never made.
    private var gap: Event {
        let loss = Loss(.gap, .audio, records: 22, from: start, to: start)
        return Event(.gap, source: "audio", stamp: start, loss: loss)
    }

    private func gaps(_ losses: [Loss]) -> [Int64] {
        losses.filter { $0.stream == .audio && $0.kind == .gap }.map(\.records)
    }

    @Test func gapWhoseEventWaitsAtAStop_isAmongWhatItReturns() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        disk.isReadOnly = true
        queue.accept(gap)
        queue.turn()
        #expect(gaps(queue.close()) == [22])
    }

    @Test func gapWhoseEventFindsNoRoom_isEnteredAllTheSame() throws {
        let disk = SimulatedDisk(seed: 1)
        let clock = ManualClock(start)
        let queue = try queue(disk, memory: 1, clock: clock)
        disk.isReadOnly = true
        queue.accept(event("fills memory"))
        queue.accept(gap)
        queue.turn()
        disk.isReadOnly = false
        clock.advance(by: .seconds(10))
        try queue.flushed()
        #expect(try queue.losses().filter { $0.kind == .gap }.map(\.records) == [22])
        for _ in 0..<QueueSettings.mailboxLimit { queue.accept(event("on its way")) }
        #expect(!queue.accept(gap))
        queue.turn()
        #expect(try queue.flushed().losses().filter { $0.kind == .gap }.map(\.records) == [44])
        #expect(queue.close().isEmpty)
    }

    /// Audio that is recorded as lost does not count in the gap until the next start.
    @Test func gapAfterStopWithoutDisk_beginsAfterLostAudio() throws {
        let disk = SimulatedDisk(seed: 1)
        let clock = ManualClock(start)
        var queue = try queue(disk, clock: clock)
        let run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 10, device: "d")
        queue.begin(run)
        for number in 0..<600 {
            if number == 5 { disk.isReadOnly = true }
            queue.accept(
                Segment(
                    run: run.id,
                    frames: 10,
                    start: clock.stamp(),
                    meanSquare: 0,
                    data: [1]
                )
            )
            clock.advance(by: .seconds(1))
            queue.turn()
        }
        queue.end(run: run.id)
        let end = clock.stamp()
        let lost = queue.close()
        #expect(lost.map(\.stream) == [.audio])
        clock.advance(by: .seconds(10))
        disk.isReadOnly = false
        queue = try self.queue(disk, clock: clock)
        for loss in lost { queue.record(loss) }
        try queue.flushed()
        let found = try #require(queue.endOfAudio())
        #expect(end.boot - found.boot <= .seconds(1))
        queue.close()
    }

    /// Memory has room for two of five; `status` reports the others while the disk refuses.
    @Test func lossesWithoutDisk_areReportedBeforeItReturns() throws {
        let disk = SimulatedDisk(seed: 1)
        let clock = ManualClock(start)
        let queue = try queue(disk, memory: 2, clock: clock)
        disk.isReadOnly = true
        for number in 0..<5 {
            queue.accept(event("\(number)"))
            queue.turn()
        }
        queue.record(Loss(.missed, .beacons, records: 3, from: start, to: start))
        queue.turn()
        let reported = Dictionary(
            uniqueKeysWithValues: queue.newLosses.map { ($0.stream, $0.records) }
        )
        #expect(reported == [.events: 3, .beacons: 3])
        disk.isReadOnly = false
        clock.advance(by: .seconds(60))
        try queue.flushed()
        #expect(queue.newLosses.isEmpty)
        #expect(try queue.losses().map(\.records).sorted() == [3, 3])
        queue.close()
    }
}
