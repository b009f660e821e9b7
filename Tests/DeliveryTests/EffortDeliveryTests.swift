// When a source was listening: from the queue, through a restart, to the receiver's files.
import Foundation
import Host
import Queue
import QueueSupport
import ReceiverSupport
import Records
import Support
import Testing
import Upload

@Suite struct EffortDeliveryTests {
    private let temporary = TemporaryFolder("effort")
    private let clock = ManualClock(
        Stamp(
            boot: BootInstant(nanoseconds: 5_000_000_000),
            // An afternoon: a time off that goes on over midnight is two intervals.
            wall: WallTime(milliseconds: 1_790_000_000_000)
        )
    )

    /// Stores a fix, and with it what was noted until now.
    private func store(_ queue: Queue) throws {
        queue.accept(
            Fix(stamp: clock.stamp(), mode: .twoDimensional, latitude: 46.5, longitude: 7.5)
        )
        _ = try queue.flushed()
    }

    private func live(_ boot: String, _ receiver: ReceiverProcess) throws {
        let queue = try Queue(at: temporary.database, bootID: boot, clock: clock)
        defer { queue.close() }
        let start = clock.stamp()
        try queue.perform { try $0.recordClock(start, synced: true, by: .kernel) }
        let changes: [SourceEffort] = [.listening, .failed("gpsd is gone"), .listening]
        for change in changes {
            queue.record(change, of: .location)
            try store(queue)
            clock.advance(by: .seconds(60))
        }
        try store(queue)
        // Nothing can change the first two intervals any more.
        clock.advance(by: .seconds(20))
        try store(queue)
        let settings = DestinationSettings(
            transport: receiver.transport,
            deviceID: "device-1",
            streamNames: [.location: "places", .effort: "waypost_effort"],
            token: { "secret" }
        )
        let isDone = try syncOnce(queue, settings)
        #expect(isDone)
    }

    @Test func intervals_tileTheTime_throughARestart() throws {
        let receiver = try ReceiverProcess()
        try live("one", receiver)
        clock.advance(by: .seconds(600))
        try live("two", receiver)
        let intervals = try receiver.records("waypost_effort").sorted {
            ($0["from"] as? String ?? "") < ($1["from"] as? String ?? "")
        }
        #expect(
            intervals.map { $0["state"] as? String } == [
                "recorded", "failed", "recorded", "unknown", "recorded", "failed",
            ]
        )
        for (interval, next) in zip(intervals, intervals.dropFirst()) {
            #expect(try #require(interval["to"] as? String) == next["from"] as? String)
        }
        #expect(intervals.allSatisfy { $0["source"] as? String == "location" })
        #expect(intervals[1]["reason"] as? String == "gpsd is gone")
        #expect(intervals[3]["reason"] as? String == "the gateway ended without notice")
    }
}
