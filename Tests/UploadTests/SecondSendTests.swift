// Requests that libcurl repeats by itself are counted again.
import Foundation
import Host
import Queue
import Records
import Support
import Testing

import Upload

@Suite struct SecondSendTests {
    /// The connection of the first request closes once the second one has been read completely.
    @Test func bodyThatLibcurlSendsTwice_countsTwice() throws {
        let count = Locked(0)
        let fixture = try BudgetFixture(.budget(10_000_000)) { _ in
            count.update { count in
                count += 1
                return count == 2 ? .hangUp : .ok
            }
        }
        defer { fixture.finish() }
        addFixes(1, to: fixture.queue)
        #expect(fixture.sync.perform(.asked).left == 0)
        addFixes(5000, to: fixture.queue)
        #expect(fixture.sync.perform(.asked).left == 0)
        let requests = fixture.server.requests
        // The newest thousand, their repeat, and the rest.
        #expect(requests.count == 4)
        #expect(requests[1].body == requests[2].body)
        #expect(requests[1].body.count > 100_000)
        // A header and an answer are some 330 bytes.
        let wire = Int64(fixture.bodies + 4 * 250)
        let spent = try #require(DayBudget(fixture.queue, clock: fixture.clock).figures?.spent)
        #expect((wire...wire + 1500).contains(spent), "\(spent) for \(wire)")
        let noted = try fixture.queue.flushed().traffic().reduce(0) { $0 + $1.traffic.total }
        #expect((wire...wire + 1500).contains(noted), "\(noted) for \(wire)")
    }
}
