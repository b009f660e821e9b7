// The wait of a gateway for its endpoint, and events that end it.
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing
import Upload

@testable import Daemon
import Setup
import Status

@Suite struct EnrolmentWaitTests {
    /// A server that refuses only the first request.
    private static let server = StubServer.posts(
        """
        def answer(path, before):
            return (200, b"{}") if before else (401, b'{"error":"not yet"}')
        """
    )

    /// A board without an RTC: a certificate is valid only once the time is known, and nothing is
    /// collected before.
    @Test func clockSync_triggersServerCheck_beforeTheInterval() throws {
        let stub = try StubServer(Self.server, "")
        defer { stub.stop() }
        let fixture = try ClockWatchTests.Fixture(ClockWatchTests.wrong)
        var configuration = Configuration()
        configuration.stateDirectory = fixture.folder
        configuration.runtimeDirectory = fixture.folder
        configuration.upload.endpoint = "http://127.0.0.1:\(stub.port)/api/ingest"
        configuration.upload.interval = .seconds(86_400)
        let token = fixture.folder + "/token"
        try Data("secret".utf8).write(to: URL(fileURLWithPath: token))
        chmod(token, 0o600)
        configuration.upload.tokenFile = token
        let board = GatewayBoard()
        let log = Log(level: .error)
        let schedule = try SourceSchedule(fixture.queue, board, clock: fixture.clock, log: log)
        let context = ServiceContext(
            queue: fixture.queue,
            board: board,
            budget: DayBudget(fixture.queue, clock: fixture.clock),
            clock: fixture.clock,
            clockWatch: fixture.watch,
            schedule: schedule,
            deviceID: "d",
            version: "1",
            environment: [:],
            log: log,
            sound: try AudioTap()
        )
        let isEnrolled = Locked(false)
        let uploads = try Uploads(context, configuration) { isEnrolled.update { $0 = true } }
        defer { uploads?.stop(by: SystemClock().now() + .seconds(5)) }
        try waitUntil("the server has refused it") { !board.errors.entries.isEmpty }
        #expect(!isEnrolled.value)
        fixture.clock.stepWall(to: ClockWatchTests.now)
        fixture.vouches.update { $0 = true }
        fixture.watch.look()
        try waitUntil("the server was asked again") { isEnrolled.value }
    }
}
