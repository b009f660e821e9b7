import Host
import SimulatedDisk
import Testing

@testable import Queue
import QueueSupport
@testable import Records
@testable import Simulation

/// A disk without room for a new database: at the first start, or after one was quarantined.
@Suite struct FullAtStartTests {
    private let clock = ManualClock(
        Stamp(
            boot: BootInstant(nanoseconds: 5_000_000_000),
            wall: WallTime(milliseconds: 1_790_000_000_000)
        )
    )

    private func queue(_ disk: SimulatedDisk) throws -> Queue {
        try Queue(at: "/state/queue.sqlite") {
            $0.disk = DiskAdapter(disk: disk)
            $0.clock = clock
            $0.isTurnedByHand = true
            $0.reserveBytes = 4096
        }
    }

    /// So many tries, one after the other.
    private func wait(_ queue: Queue, tries: Int) {
        for _ in 0..<tries {
            clock.advance(by: .seconds(10))
            queue.turn()
        }
    }

    private func setAside(_ disk: SimulatedDisk) -> [String] {
        disk.names(in: "/state").filter { $0.contains("corrupt") }
    }

    /// The disk takes it all now, and nothing of what was tried before is left.
    private func expectFirstEvent(_ queue: Queue, _ disk: SimulatedDisk) throws {
        wait(queue, tries: 2)
        try queue.flushed()
        #expect(queue.newest(.events) == 1)
        #expect(setAside(disk).isEmpty)
        queue.close()
    }

    /// The remains of a failed try to create a database do not count as a damaged one.
    @Test(arguments: [0, 600, 1100, 3000, 20_000, 60_000])
    func triesOfAFullDisk_leaveNoDatabasesBehind(room: Int64) throws {
        let disk = SimulatedDisk(seed: 1)
        disk.capacity = disk.usedBytes + room
        let queue = try queue(disk)
        queue.accept(Event(.sourceLost, source: "a", stamp: clock.stamp()))
        wait(queue, tries: 5)
        #expect(setAside(disk).isEmpty)
        disk.capacity = nil
        try expectFirstEvent(queue, disk)
    }

    @Test func triesOfADiskThatRefuses_leaveNoDatabasesBehind() throws {
        let disk = SimulatedDisk(seed: 1)
        disk.fail(.syncs)
        let queue = try queue(disk)
        wait(queue, tries: 5)
        disk.clearFaults()
        queue.accept(Event(.sourceLost, source: "a", stamp: clock.stamp()))
        try expectFirstEvent(queue, disk)
    }

    @Test func damageOnAFullDisk_setsOneDatabaseAside() throws {
        let disk = SimulatedDisk(seed: 1)
        let queue = try queue(disk)
        queue.accept(Event(.sourceLost, source: "a", stamp: clock.stamp()))
        try queue.flushed()
        // There is room for the mark of the one that goes, and for no more.
        disk.capacity = disk.usedBytes + 1024
        queue.reportDamage("for the test", generation: queue.generation)
        wait(queue, tries: 5)
        disk.capacity = nil
        wait(queue, tries: 2)
        try queue.flushed()
        while queue.turnMaintenance() {}
        #expect(setAside(disk).count { !$0.hasSuffix("-mark") && !$0.hasSuffix("-wal") } == 1)
        #expect(queue.pending(.events)?.database == 1)
        queue.close()
    }
}
