// Losses that a gateway could not record at its end are recorded by the next.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import SQLite
import Setup
import Support
import Testing

@testable import Daemon

@Suite struct UnenteredLossesTests {
    @Test func recordsInFlight_areInTheLedgerAfterTheNextStart() throws {
        let fixture = try GatewayFixture(change: { configuration in
            let line = "\(Stream.events.number) 0 1 0 0 1000000000 1000"
            let text = "\(Gateway.currentBootID())\n\(line)\n"
            let folder = configuration.runtimeDirectory
            try? FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            try? text.write(
                toFile: folder + "/records-in-flight",
                atomically: true,
                encoding: .utf8
            )
        })
        try waitUntil("a start") { fixture.readies.value >= 1 }
        fixture.stop()
        let queue = try Connection(
            path: fixture.folder + "/state/queue.sqlite",
            access: .readOnly
        )
        let lost = "SELECT sum(records) FROM losses WHERE kind='dropped' AND stream=?"
        #expect(try queue.integer(lost, Int64(Stream.events.number)) == 1)
    }

    /// The disk failed until the board was restarted: losses are dated by the boot in which they
    /// occurred.
    @Test func lossesOfABootBefore_areDatedByThatBoot() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 9_000_000_000),
                wall: WallTime(milliseconds: 1_900_000_000_000)
            )
        )
        let (first, second) = (WallTime(milliseconds: 1_800_000_000_000), clock.wall())
        func queue(_ boot: String, anchoredAt wall: WallTime) throws -> Queue {
            let queue = try Queue(at: folder.path + "/q", bootID: boot) {
                $0.isTurnedByHand = true
            }
            let stamp = Stamp(boot: BootInstant(nanoseconds: 5_000_000_000), wall: wall)
            queue.accept(Event(.started, source: "gateway", stamp: stamp))
            try queue.perform { try $0.recordClock(stamp, synced: true) }
            return queue
        }
        _ = try queue("before", anchoredAt: first).close()
        let after = try queue("after", anchoredAt: second)
        // That boot's clock was at 1970, 1 s before and 3 s after the known time.
        let number = Stream.events.number
        for (name, line) in [
            ("losses-not-entered", "\(number) dropped 2 4000000000 7 4000000000 7"),
            ("records-in-flight", "\(number) 1 5 6000000000 7 8000000000 7"),
            ("records-in-flight.new", "\(number) 1 90 6000000000 7 8000000000 7"),
        ] {
            let file = name.hasSuffix(".new") ? name : name + ".before"
            let path = "\(folder.path)/\(file)"
            try "before\n\(line)\n".write(toFile: path, atomically: true, encoding: .utf8)
        }
        let unwritten = InFlightFile(
            after,
            clock: clock,
            directory: folder.path,
            bootID: "after"
        )
        unwritten.enter()
        unwritten.enter()
        let entry = try #require(try after.flushed().losses().first { $0.kind == .dropped })
        // The first event of the second boot is number 2: by the numbers, one of the five was
        // committed.
        #expect(entry.records == 6)
        #expect(entry.from == first + .seconds(-1))
        #expect(entry.to == first + .seconds(3))
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(left.filter { $0.contains("before") }.isEmpty)
    }

    /// A power cut before the copy on the card is removed: the next start finds it again.
    @Test func earlierBootLosses_areRecordedOnce_ifFoundAgain() throws {
        let folder = TemporaryFolder()
        for boot in ["b", "c"] {
            let queue = try Queue(at: folder.path + "/q", bootID: boot) {
                $0.isTurnedByHand = true
            }
            for _ in 1...2 {
                let line = "\(Stream.events.number) dropped 2 4000000000 7 4000000000 7"
                let path = "\(folder.path)/losses-not-entered.a"
                try "a\n\(line)\n".write(toFile: path, atomically: true, encoding: .utf8)
                InFlightFile(queue, clock: SystemClock(), directory: folder.path, bootID: boot)
                    .enter()
                #expect(!FileManager.default.fileExists(atPath: path))
            }
            #expect(try queue.flushed().losses().map(\.records) == [2])
            _ = queue.close()
        }
    }

    /// The program is killed before the disk is back, or after, before the next check of pending
    /// losses.
    @Test(arguments: [false, true])
    func lossesThatWaited_areEnteredOnce_afterADeath(isBack: Bool) throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(SystemClock().stamp())
        func started() throws -> (queue: Queue, unwritten: InFlightFile) {
            clock.advance(by: .seconds(60))
            let path = folder.path + "/state/q"
            let queue = try Queue(at: path, bootID: "b") {
                $0.isTurnedByHand = true
                $0.clock = clock
            }
            let place = folder.path
            return (
                queue, InFlightFile(queue, clock: clock, directory: place, bootID: "b")
            )
        }
        let before = try started()
        let stamp = clock.stamp()
        before.queue.record(Loss(.missed, .beacons, records: 5, from: stamp, to: stamp))
        before.unwritten.look()
        try FileManager.default.createDirectory(
            atPath: folder.path + "/state",
            withIntermediateDirectories: true
        )
        clock.advance(by: .seconds(60))
        if isBack { try before.queue.flushed() }
        before.queue.checkStorage()
        let after = try started()
        after.unwritten.enter()
        #expect(try after.queue.flushed().losses().map(\.records) == [5])
        // Losses of this start, which is another one.
        after.queue.record(Loss(.missed, .beacons, records: 2, from: stamp, to: stamp))
        after.unwritten.keepAll()
        let last = try started()
        last.unwritten.enter()
        #expect(try last.queue.flushed().losses().map(\.records) == [7])
        withExtendedLifetime((before, after)) {}
    }

    /// The disk is slow but does not hang: the writer has sent a heartbeat just now.
    @Test func inFlightRecords_areKept_ifStopTimesOutOnSlowDisk() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(at: folder.path + "/q", bootID: "b") {
            $0.isTurnedByHand = true
        }
        let clock = SystemClock()
        let unwritten = InFlightFile(
            queue,
            clock: clock,
            directory: folder.path,
            bootID: "b"
        )
        func kept() -> [Int64] {
            PendingLossFile.inFlight(in: folder.path, bootID: "b", queue.streams)
                .map(\.records.count)
        }
        for _ in 0..<3 {
            queue.accept(Event(.started, source: "gateway", stamp: clock.stamp()))
        }
        unwritten.look()
        #expect(kept().isEmpty)
        unwritten.keepAll()
        #expect(kept() == [3])
        // The end of the queue has returned all losses.
        unwritten.keep(queue.close())
        #expect(kept().isEmpty)
        unwritten.keepAll()
        #expect(kept().isEmpty)
    }
}
