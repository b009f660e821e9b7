import Host
import Queue
import Requests
import Testing

@testable import Upload

@Suite struct HeartbeatTests {
    @Test func beat_tellsItsBytes_andIsRestedAfterwards() throws {
        let server = try FaultyServer { _ in .ok }
        let heartbeat = try Heartbeat(.init(endpoint: server.endpoint, userAgent: "waypost/test"))
        let stop = try StopSignal()
        let now = SystemClock().now()
        let first = heartbeat.beat(at: now, until: stop)
        #expect(first.sent > 0 && first.received > 0)
        #expect(heartbeat.beat(at: now + .seconds(59), until: stop) == Traffic())
        let later = heartbeat.beat(at: now + .seconds(60), until: stop)
        #expect(later.sent == first.sent)
    }
}
