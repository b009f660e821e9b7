import Foundation
import Host
import Records
import Support
import Testing

import Queue
import QueueSupport

/// Records in flight to a disk that hangs, and how many of them the next start finds missing.
@Suite struct InFlightTests {
    private func event(_ number: Int) -> Event {
        Event(.started, source: "\(number)", detail: [], stamp: SystemClock().stamp())
    }

    private func lost(_ queue: Queue) throws -> [Records.Stream: Int] {
        let entries = try queue.flushed().losses()
        return Dictionary(entries.map { ($0.stream, $0.records) }, uniquingKeysWith: +)
    }

    @Test func records_areInFlightUntilTheyAreCommitted() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(commitInterval: .seconds(3600))
        for number in 0..<5 { queue.accept(testSighting(number)) }
        queue.accept(event(1))
        let expected = [
            RecordsInFlight(stream: .beacons, after: 0, count: 5),
            RecordsInFlight(stream: .events, after: 0, count: 1),
        ]
        #expect(queue.inFlight.sorted { $0.count > $1.count } == expected)
        try queue.flushed()
        #expect(queue.inFlight.isEmpty)
        queue.accept(testSighting(6))
        #expect(queue.inFlight == [RecordsInFlight(stream: .beacons, after: 5, count: 1)])
        queue.close()
    }

    @Test func whatDidNotReachTheDatabase_isLost_andNothingElse() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<8 { queue.accept(testSighting(number)) }
        try queue.flushed()
        let stamp = SystemClock().stamp()
        // Three of seven after the fifth were committed, and both of two after the sixth.
        for (after, count): (Int64, Int64) in [(5, 7), (6, 2)] {
            let records = RecordsInFlight(stream: .beacons, after: after, count: count)
            _ = queue.lost(of: records, from: stamp, to: stamp).map(queue.record)
        }
        // Its numbers do not reach the twentieth: another database was used since, so the count is
        // unknown.
        let others = RecordsInFlight(stream: .beacons, after: 20, count: 7)
        _ = queue.lost(of: others, from: stamp, to: stamp).map(queue.record)
        #expect(try lost(queue) == [.beacons: 4])
        queue.close()
    }
}
