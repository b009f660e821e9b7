import Host
import HTTP
import Queue
import Testing

@testable import Upload

@Suite struct HeartbeatTests {
    @Test func heartbeat_reportsItsBytes_andThenRests() throws {
        let server = try FaultyServer { _ in .ok }
        let heartbeat = try HeartbeatRequest(
            .init(endpoint: server.endpoint, userAgent: "waypost/test")
        )
        let stop = try StopSignal()
        let now = SystemClock().now()
        let first = heartbeat.beat(at: now, until: stop)
        #expect(first.sent > 0 && first.received > 0)
        #expect(heartbeat.beat(at: now + .seconds(59), until: stop) == Traffic())
        let later = heartbeat.beat(at: now + .seconds(60), until: stop)
        #expect(later.sent == first.sent)
    }

    /// Its bytes count against the budget too.
    @Test(arguments: [nil, 1500] as [Int64?])
    func spentBudget_hasNoBeat(budget: Int64?) throws {
        let fixture = try UploadFixture(
            change: {
                $0.upload.heartbeatURL = $0.destination.transport.endpoint
                $0.upload.dailyBudget = budget
            }
        ) { _ in .ok }
        defer { fixture.finish() }
        // The first sync's heartbeat comes before the second sync's answer.
        for _ in 1...2 { #expect(try fixture.sync()) }
        #expect(fixture.server.requests.map(\.method) == (budget == nil ? ["GET"] : []))
    }
}
