import Host
import SimulatedDisk
import Testing

@testable import Queue
import QueueSupport
@testable import Records
@testable import Simulation

/// Sound that goes on while the database is replaced on a disk that refuses something.
@Suite struct AudioReplacedTests {
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 5_000_000_000),
        wall: WallTime(milliseconds: 1_790_000_000_000)
    )

    private let disk = SimulatedDisk(seed: 1)
    private let clock = ManualClock(Self.start)
    private let queue: Queue
    private let run: AudioRun

    init() throws {
        queue = try Queue(at: "/state/queue.sqlite") { [disk, clock] in
            $0.disk = DiskAdapter(disk: disk)
            $0.clock = clock
            $0.isTurnedByHand = true
        }
        run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 10,
            device: "d",
            chunkSegments: 4,
            overlapSegments: 0
        )
    }

    private func record(_ numbers: Range<UInt8>) {
        for number in numbers {
            queue.accept(
                Segment(
                    run: run.id,
                    frames: 10,
                    start: clock.stamp(),
                    meanSquare: 0.01,
                    data: [number]
                )
            )
            clock.advance(by: .seconds(1))
            queue.turn()
        }
    }

    /// Returns the audio that is uploaded, that of the quarantined database first.
    private func soundSent() throws -> [UInt8] {
        while queue.turnMaintenance() {}
        var sound: [UInt8] = []
        while let range = queue.pending(.audio) {
            let reader = try queue.reader(of: range.database)
            try reader.chunks(range.first...range.last) { chunk in
                let first = chunk.record.firstSegment
                for id in first..<(first + Int64(chunk.record.segments)) {
                    sound += try reader.segment(id)?.data ?? []
                }
            }
            try queue.perform { writer in
                let batch = try writer.freeze(range, through: range.last)
                if let batch { try writer.uploaded(batch) }
            }
        }
        return sound
    }

    /// One sync fails as the database is replaced, or just after: the run that goes on is known to the next try, too.
    @Test(arguments: 0..<24) func oneRefusal_losesNoSound(after count: Int) throws {
        queue.begin(run)
        record(0..<6)
        disk.fail(.syncs, after: count, times: 1)
        queue.reportDamage("for the test", generation: queue.generation)
        queue.turn()
        record(6..<20)
        disk.clearFaults()
        clock.advance(by: .seconds(10))
        queue.end(run: run.id)
        try queue.flushed()
        #expect(try soundSent().sorted() == Array(0..<20))
        #expect(try queue.losses().map { "\($0.stream) \($0.kind) \($0.records)" } == [])
    }
}
