import CLinux
import Configuration
import Foundation
import Glibc
import Host
import HTTP
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing
import Upload

/// Network changes, token changes, bytes on the wire, and the rate limit.
@Suite struct ReachTests {
    /// An HTTP server that counts each byte of its connections.
    private struct CountingServer: Sendable {
        let received = Locked(0)
        let sent = Locked(0)
        let requests = Locked(0)
        /// Returns the answer to a request by its number, counted from 1.
        let answer: @Sendable (Int, String) -> String

        func serve(_ client: Int32) {
            var buffer: [UInt8] = []
            var block = [UInt8](repeating: 0, count: 16 << 10)
            while case let count = recv(client, &block, block.count, 0), count > 0 {
                received.update { $0 += count }
                buffer += block.prefix(count)
                guard let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
                let head = String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
                let field = head.lowercased().components(separatedBy: "content-length: ").last
                let length = Int(field?.prefix { $0.isNumber } ?? "") ?? 0
                guard buffer.count >= end.upperBound + length else { continue }
                buffer.removeFirst(end.upperBound + length)
                let number = requests.update { count -> Int in
                    count += 1
                    return count
                }
                let reply = Array(answer(number, head).utf8)
                sent.update { $0 += reply.count }
                guard send(client, reply, reply.count, Int32(MSG_NOSIGNAL)) == reply.count else {
                    return
                }
            }
        }
    }

    private static func http(_ status: Int, _ body: String = "{}", _ more: String = "") -> String {
        "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\n\(more)"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// A queue and an uploader; removed by `finish`.
    private final class Fixture {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let queue: Queue
        let server: CountingServer
        private let listener: PlainServer
        let uploader: Uploader
        let board = Publisher<UploadReport>()
        let token = Locked("secret")
        private let stop: StopSignal
        private var thread: OwnThread?

        init(
            maxRate: Int? = nil,
            maxBatchBytes: Int = 8 << 20,
            _ answer: @escaping @Sendable (Int, String) -> String
        ) throws {
            queue = try Queue(at: temporary.path + "/q")
            let server = CountingServer(answer: answer)
            self.server = server
            let listener = try PlainServer { server.serve($0) }
            self.listener = listener
            let token = token
            let uploader = BenchSettings(
                upload: UploadSettings {
                    $0.maxBatchBytes = maxBatchBytes
                    $0.clockPatience = .zero
                },
                destination: DestinationSettings(
                    transport: TransportSettings(
                        endpoint: "http://127.0.0.1:\(listener.port)/api/ingest",
                        userAgent: "waypost/test",
                        maxRate: maxRate
                    ),
                    deviceID: "device-1",
                    streamNames: [:],
                    compression: .none,
                    token: { token.value }
                )
            ).uploader(queue, board)
            let stop = try StopSignal()
            self.uploader = uploader
            self.stop = stop
            thread = try OwnThread("uploader") { uploader.run(until: stop) }
        }

        func add(_ count: Int) {
            let stamp = SystemClock().stamp()
            for _ in 0..<count {
                queue.accept(
                    Fix(stamp: stamp, mode: .twoDimensional, latitude: 46.5, longitude: 6.5)
                )
            }
        }

        func sync() throws {
            let isOver = Locked(false)
            uploader.sync { _ in isOver.update { $0 = true } }
            try waitUntil("the sync ends", limit: .seconds(120)) { isOver.value }
        }

        var connections: Int { listener.connectionCount }

        var uploaded: Int {
            let all = try? queue.flushed().statistics()
            return all?.first { $0.stream == .location }?.uploaded ?? 0
        }

        func finish() {
            uploader.stop()
            stop.raise()
            if let thread = thread.take() { thread.join() }
            queue.close()
            listener.close()
        }
    }

    @Test func dailyTraffic_matchesTheServers_includingRetries() throws {
        let fixture = try Fixture(maxBatchBytes: 16 << 10) { number, _ in
            number <= 2 ? Self.http(500, "{\"error\":\"busy\"}") : Self.http(200)
        }
        defer { fixture.finish() }
        fixture.add(300)
        for _ in 0..<3 { try fixture.sync() }
        #expect(fixture.uploaded == 300)
        let days = try fixture.queue.flushed().traffic()
        // Midnight may pass during the test.
        let sum = days.reduce(Traffic()) { $0 + $1.traffic }
        #expect(sum.sent == Int64(fixture.server.received.value))
        #expect(sum.received == Int64(fixture.server.sent.value))
        #expect(fixture.server.requests.value >= 5)
    }

    @Test func networkThatCameBack_endsTheWaitAfterAFailure() throws {
        let isDown = Locked(true)
        let fixture = try Fixture { _, _ in isDown.value ? Self.http(500) : Self.http(200) }
        defer { fixture.finish() }
        fixture.add(3)
        // Often enough that the wait is minutes long.
        for _ in 0..<12 { try fixture.sync() }
        isDown.update { $0 = false }
        let before = fixture.server.requests.value
        fixture.uploader.tick()
        fixture.uploader.networkChanged()
        try waitUntil("the records arrive") { fixture.uploaded == 3 }
        #expect(fixture.server.requests.value == before + 1)
        // With nothing pending no request is made.
        fixture.uploader.networkChanged()
        try fixture.sync()
        #expect(fixture.server.requests.value == before + 1)
    }

    /// Both arrive during a sync and lead to one: the old connection may still be dead.
    @Test func networkChange_isKept_ifASyncIsRequested() throws {
        let isOpen = Locked(false)
        let fixture = try Fixture { _, _ in
            while !isOpen.value { usleep(1000) }
            return Self.http(200)
        }
        defer { fixture.finish() }
        fixture.add(3)
        let asked = Locked(0)
        fixture.uploader.sync { _ in asked.update { $0 += 1 } }
        try waitUntil("the first request") { fixture.server.requests.value == 1 }
        fixture.add(3)
        fixture.uploader.networkChanged()
        fixture.uploader.sync { _ in asked.update { $0 += 1 } }
        isOpen.update { $0 = true }
        try waitUntil("both are answered") { asked.value == 2 }
        #expect(fixture.uploaded == 6)
        #expect(fixture.connections == 2)
    }

    @Test func newToken_isTriedAtOnce_afterARefusedOne() throws {
        let fixture = try Fixture { _, head in
            head.contains("X-Device-Token: good") ? Self.http(200) : Self.http(401)
        }
        defer { fixture.finish() }
        fixture.add(3)
        try fixture.sync()
        #expect(fixture.board.state.value?.phase == .tokenRefused)
        fixture.token.update { $0 = "good" }
        fixture.uploader.tokenChanged()
        try waitUntil("the records arrive") { fixture.uploaded == 3 }
        try waitUntil("all is well") { fixture.board.state.value?.phase == .idle }
    }

    @Test func retryAfter_appliesToEveryStream() throws {
        let fixture = try Fixture { _, _ in Self.http(503, "{}", "Retry-After: 600\r\n") }
        defer { fixture.finish() }
        fixture.add(3)
        fixture.queue.accept(Event(.gap, source: "audio", detail: [], stamp: SystemClock().stamp()))
        fixture.uploader.tick()
        try waitUntil("the first answer") { fixture.board.state.value?.notBefore != nil }
        // Neither a tick nor another network starts a sync early.
        fixture.uploader.tick()
        fixture.uploader.networkChanged()
        fixture.uploader.tick()
        try waitUntil("the ticks are taken") { fixture.board.state.value?.phase == .waiting }
        #expect(fixture.server.requests.value == 1)
        let until = try #require(fixture.board.state.value?.notBefore)
        #expect(until - SystemClock().now() > .seconds(300))
    }

    /// 200 kB at 50 kB/s take four seconds, in one batch or in many.
    @Test(arguments: [8 << 20, 8 << 10])
    func maxRate_limits_overRequestsToo(maxBatchBytes: Int) throws {
        let fixture = try Fixture(maxRate: 50_000, maxBatchBytes: maxBatchBytes) { _, _ in
            Self.http(200)
        }
        defer { fixture.finish() }
        fixture.add(1400)
        let clock = SystemClock()
        let start = clock.now()
        try fixture.sync()
        let seconds = (clock.now() - start).inSeconds
        let bytes = Double(fixture.server.received.value)
        #expect(fixture.uploaded == 1400)
        #expect(bytes > 150_000)
        #expect(bytes / seconds < 3 * 50_000)
        #expect(bytes / seconds > 50_000 / 3)
    }
}
