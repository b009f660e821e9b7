// Records that come too fast, losses of sources, and work that fails.
import Foundation
import Host
import StatusBoard
import Queue
import QueueSupport
import Records
import Support
import Synchronization
import Testing

/// What the writer counts and reports, and leaves untouched.
@Suite struct WriterFaultTests {
    @Test func overrun_isCountedAndReported() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let isHeld = Mutex(true)
        let holder = Thread {
            // Keep the writer busy for a while.
            _ = try? queue.perform { _ in while isHeld.withLock({ $0 }) { usleep(500) } }
        }
        holder.start()
        try waitUntil("the writer is held") {
            for number in 0..<25_000 { queue.accept(testSighting(number)) }
            return !queue.newLosses.isEmpty
        }
        isHeld.withLock { $0 = false }
        try waitUntil("the loss is recorded") { queue.newLosses.isEmpty }
        let losses = try queue.flushed().losses()
        #expect(losses.map(\.kind) == [.overrun])
        #expect(losses.first?.stream == .beacons)
        try checkSum(queue)
        queue.close()
        let reader = try folder.queue().reader()
        var events: [String] = []
        try reader.events(1...100) { _, kind, _, detail in events.append("\(kind) \(detail)") }
        #expect(
            events.contains { $0.hasPrefix("gap {\"stream\":\"beacons\",\"kind\":\"overrun\"") }
        )
    }

    /// A loss that a source reports has no sequence number; it is recorded even if no record
    /// follows.
    @Test func sourceLoss_isRecordedAndReported_ifNoRecordFollows() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let stamp = SystemClock().stamp()
        queue.record(Loss(.missed, .beacons, records: 3, from: stamp, to: stamp))
        queue.record(Loss(.missed, .beacons, records: 4, from: stamp, to: stamp))
        try waitUntil("the loss is recorded") { queue.newLosses.isEmpty }
        let losses = try queue.flushed().losses()
        #expect(losses.map(\.kind) == [.missed])
        #expect(losses.map(\.records) == [7])
        try checkSum(queue)
        queue.close()
        let reader = try folder.queue().reader()
        var events: [String] = []
        try reader.events(1...100) { _, kind, _, detail in events.append("\(kind) \(detail)") }
        #expect(
            events.contains { $0.hasPrefix("gap {\"stream\":\"beacons\",\"kind\":\"missed\"") }
        )
    }

    @Test func muchAtOnce_isNotGivenUpWhileTheDiskWorks() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let isHeld = Mutex(true)
        let holder = Thread {
            _ = try? queue.perform { _ in while isHeld.withLock({ $0 }) { usleep(500) } }
        }
        holder.start()
        // More audio and sightings than memory holds while the disk fails.
        record(queue, segments: 600, bytes: 20_000)
        for number in 0..<15_000 { queue.accept(testSighting(number)) }
        isHeld.withLock { $0 = false }
        #expect(try queue.figures(.audio).accepted == 43)
        #expect(try queue.figures(.beacons).accepted == 15_000)
        #expect(try queue.flushed().losses().isEmpty)
        try checkSum(queue)
        queue.close()
    }

    @Test func work_thatFails_leavesNothingBehind() throws {
        struct Refused: Error {}
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<100 { queue.accept(testSighting(number)) }
        let batch = try queue.freeze(.beacons, 64)
        #expect(throws: Refused.self) {
            try queue.perform { writer in
                try writer.split(batch)
                throw Refused()
            }
        }
        #expect(try queue.nextReady(.beacons) == batch)
        try checkSum(queue)
        queue.close()
    }
}
