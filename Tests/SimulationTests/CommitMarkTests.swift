import Foundation
import Host
import SimulatedDisk
import Testing

@testable import Queue
import QueueSupport
@testable import Records
@testable import Simulation

/// A commit that is reported as failed but is on the disk, in a database that is then quarantined.
@Suite struct CommitMarkTests {
    private let start = Stamp(
        boot: BootInstant(nanoseconds: 5_000_000_000),
        wall: WallTime(milliseconds: 1_790_000_000_000)
    )

    private func queue(_ disk: SimulatedDisk) throws -> Queue {
        try Queue(at: "/state/queue.sqlite") {
            $0.disk = DiskAdapter(disk: disk)
            $0.clock = ManualClock(start)
            $0.isTurnedByHand = true
        }
    }

    private func accept(_ queue: Queue, _ numbers: Range<Int>) {
        for number in numbers {
            queue.accept(Event(.sourceLost, source: "source \(number) ", stamp: start))
        }
    }

    /// The disk takes what is committed, and refuses to say so; then the database is found to be damaged.
    private func failAndReplace(_ disk: SimulatedDisk, _ queue: Queue) throws {
        disk.fail(.syncs)
        #expect(throws: (any Error).self) { try queue.flushed() }
        disk.clearFaults()
        queue.reportDamage("for the test", generation: queue.generation)
        queue.turn()
        try queue.flushed()
        while queue.turnMaintenance() {}
    }

    /// Returns what is uploaded from the live database and the quarantined ones.
    private func readAll<Value>(
        _ queue: Queue,
        _ stream: Records.Stream,
        _ read: (Reader, ClosedRange<Int64>) throws -> [Value]
    ) throws -> [Value] {
        var found: [Value] = []
        while let range = queue.pending(stream) {
            let reader = try queue.reader(of: range.database)
            found += try read(reader, range.first...range.last)
            try queue.perform { writer in
                guard let batch = try writer.freeze(range, through: range.last) else { return }
                try writer.uploaded(batch)
            }
        }
        return found
    }

    private func events(_ queue: Queue) throws -> [Int] {
        let kind = try #require(queue.streams[.events])
        return try readAll(queue, .events) { reader, range in
            var found: [Int] = []
            try reader.rows(kind, range) { row in
                let text = "\(row.record.values)"
                found += (0..<9).filter { text.contains("source \($0) ") }
            }
            return found
        }
    }

    /// A card changes a bit of it: of what was accepted nothing is lost, and nothing twice.
    @Test(arguments: 0..<8)
    func markWithAChangedBit_saysWhatItSaid(bit: UInt8) throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        accept(queue, 0..<3)
        try queue.flushed()
        accept(queue, 3..<5)
        disk.fail(.syncs)
        #expect(throws: (any Error).self) { try queue.flushed() }
        disk.clearFaults()
        queue.reportDamage("for the test", generation: queue.generation)
        queue.turn()
        try queue.flushed()
        let files = DiskAdapter(disk: disk)
        let name = try #require(files.names(in: "/state").first { $0.hasSuffix("-mark") })
        var mark = try files.read("/state/\(name)", at: 0, count: 1 << 20)
        let text = String(decoding: mark, as: UTF8.self)
        let number = try #require(text.range(of: "events="))
        mark[text.utf8.distance(from: text.startIndex, to: number.upperBound)] ^= 1 << bit
        try files.write("/state/\(name)", mark)
        while queue.turnMaintenance() {}
        #expect(try events(queue).sorted() == [0, 1, 2, 3, 4])
        #expect(try queue.losses().isEmpty)
    }

    @Test func eachBitOfAMark_mayBeChanged() throws {
        let before = "3 4 6 location/evicted=2 location=5 sightings=7 end"
        let mark = try #require(CommitMark("\(before) \(Checksum.of(Array(before.utf8)))\n"))
        let bytes = Array(mark.text.utf8)
        for place in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[place] ^= 1 << bit
                #expect(CommitMark(String(decoding: changed, as: UTF8.self)) == mark, "\(place)")
            }
        }
    }

    @Test func failedCommitThatLanded_goesOutOfOneDatabase() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        accept(queue, 0..<5)
        try queue.flushed()
        accept(queue, 5..<9)
        try failAndReplace(disk, queue)
        #expect(try events(queue).sorted() == Array(0..<9))
        #expect(try queue.losses().isEmpty)
    }

    /// Losses of a failed commit are recorded with the next one, and are in both databases.
    @Test func lossesOfAFailedCommit_areEnteredOnce() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        queue.record(Loss(.missed, .beacons, records: 7, from: start, to: start))
        try queue.flushed()
        queue.record(Loss(.missed, .beacons, records: 5, from: start, to: start))
        queue.record(Loss(.overrun, .location, records: 1, from: start, to: start))
        try failAndReplace(disk, queue)
        #expect(try queue.losses().map(\.records).sorted() == [1, 12])
    }

    /// Two of the three segments of a chunk are committed, and the third one fails: it is in the next database.
    @Test func soundOfAFailedCommit_goesOutOnce() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 10,
            device: "d",
            chunkSegments: 3,
            overlapSegments: 0
        )
        queue.begin(run)
        func record(_ number: Int) {
            let data = [UInt8(number)]
            queue.accept(
                Segment(run: run.id, frames: 20, start: start, meanSquare: 0, data: data)
            )
        }
        for number in 0..<2 { record(number) }
        try queue.flushed()
        record(2)
        try failAndReplace(disk, queue)
        queue.end(run: run.id)
        try queue.flushed()
        let sound: [UInt8] = try readAll(queue, .audio) { reader, range in
            var bytes: [UInt8] = []
            try reader.chunks(range) { chunk in
                let first = chunk.record.firstSegment
                for id in first..<(first + Int64(chunk.record.segments)) {
                    bytes += try reader.segment(id)?.data ?? []
                }
            }
            return bytes
        }
        #expect(sound.sorted() == [0, 1, 2])
    }

    /// The damaged one is away, and the disk refuses the next: that one, half made, is found to be damaged, too.
    @Test(arguments: [10, 60, 100, 110, 120, 130, 140, 150, 160, 200])
    func halfMadeDatabase_hasLostNothing(after count: Int) throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        accept(queue, 0..<5)
        try queue.flushed()
        disk.fail(.writes, after: count)
        for _ in 0..<2 {
            queue.reportDamage("for the test", generation: queue.generation)
            queue.turn()
        }
        disk.clearFaults()
        queue.reportDamage("for the test", generation: queue.generation)
        queue.turn()
        try queue.flushed()
        while queue.turnMaintenance() {}
        #expect(try queue.losses().isEmpty)
        #expect(try events(queue).sorted() == Array(0..<5))
    }
}
