// GNSS receivers that cannot be believed yet or at all: without the leap seconds, or simulated.
import Configuration
import Foundation
import Host
import Records
import SourceSupport
import StatusBoard
import Support
import Testing

@testable import Location

@Suite struct DoubtfulReceiverTests {
    /// A session that reads lines of gpsd, at times of the test's choice.
    private final class Source {
        let sink = RecordingSink()
        let board = Publisher<SourceReport>()
        let clock = ManualClock(testStart)
        private var session: LocationSession

        init() {
            let settings = LocationSettings {
                $0.gpsd = HostPort(host: "h", port: 1)
                $0.interval = .milliseconds(1)
            }
            session = LocationSession(settings: settings, sink: sink, board: board)
            session.connected(clock.now())
        }

        func report(_ report: GPSReport, from device: String = "/dev/ttyACM0") {
            session.receive(report, from: device, at: clock.stamp())
            session.update(clock.now())
        }

        /// Sends reports of a fix: one, and after each `pause` another one.
        func fixes(_ count: Int, every pause: Duration, ahead: Duration = .zero) {
            for _ in 0..<count {
                var position = GPSReport.Position(mode: 3)
                position.time = clock.wall() + ahead
                (position.latitude, position.longitude) = (52, 13)
                report(.position(position))
                clock.advance(by: pause)
            }
        }

        func finish() { session.disconnected(clock.now()) }
    }

    /// Returns the lines of a file in Tests/Fixtures/gpsd, without comments, as gpsd would send
    /// them now.
    private func lines(_ name: String, now: (_ index: Int) -> WallTime) throws -> [String] {
        let path = Tree.path("Tests/Fixtures/gpsd/\(name)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        return text.split(separator: "\n").enumerated().map { index, line in
            let json = line.components(separatedBy: "  #")[0]
            return json.replacingOccurrences(of: "@T+18", with: (now(index) + .seconds(18)).rfc3339)
                .replacingOccurrences(of: "@T", with: now(index).rfc3339)
        }
    }

    /// Unpacks a line as the adapter does.
    private func unpack(_ lines: [String]) throws -> [GPSReport] {
        let server = try LineServer { _ in "" }
        defer { server.close() }
        var connection = try GPSDConnection(
            host: "127.0.0.1",
            port: server.port,
            until: StopSignal()
        )
        return try lines.map { line in
            let found = connection.unpack(Array(line.utf8))
            return try #require(found).report
        }
    }

    @Test func coldReceiverThatLearnsTheLeapSeconds_losesNoFix() throws {
        let source = Source()
        let forms = try lines("gpsd-leap-cold.jsonl") { _ in testStart.wall }
        let times = try unpack(forms).map { report -> WallTime in
            guard case .position(let position) = report else { return testStart.wall }
            return try #require(position.time)
        }
        #expect(times == [testStart.wall + .seconds(18), testStart.wall])
        source.fixes(25, every: .seconds(1), ahead: .seconds(18))
        source.fixes(10, every: .seconds(1))
        source.finish()
        #expect(source.sink.fixes.count == 35)
        #expect(source.board.state.value?.dropped == 0)
        // Right from the third fix on; the last epochs are open for longer.
        let right = source.sink.times.filter { $0.wall(at: testStart.boot) == testStart.wall }
        #expect(right.count >= 7)
        #expect(source.sink.settled == 0)
    }

    /// The time does not go back then: the loss was longer than the correction.
    @Test(arguments: [12, 40, 600], [false, true])
    func coldReceiverThatLosesItsFix_isBelievedWhenItIsBack(seconds: Int, hasTime: Bool) {
        let source = Source()
        source.fixes(25, every: .seconds(1), ahead: .seconds(18))
        for _ in 0..<seconds {
            var position = GPSReport.Position(mode: 1)
            position.time = hasTime ? source.clock.wall() + .seconds(18) : nil
            source.report(.position(position))
            source.clock.advance(by: .seconds(1))
        }
        source.fixes(40, every: .seconds(1))
        source.finish()
        #expect(source.sink.fixes.count == 65)
        #expect(source.board.state.value?.dropped == 0)
    }

    @Test func receiver_knowsLeapSeconds_13MinutesAfterPlugIn() {
        let source = Source()
        source.fixes(77, every: .seconds(10))
        #expect(source.sink.settled == 0)
        #expect(source.sink.times.count > 70)
        source.fixes(10, every: .seconds(10))
        let settled = source.sink.settled
        #expect(settled >= 5)
        source.report(.receiver(path: "/dev/ttyACM0", isActive: false))
        source.clock.advance(by: .seconds(5))
        source.fixes(70, every: .seconds(10))
        #expect(source.sink.settled == settled)
        source.fixes(20, every: .seconds(10))
        #expect(source.sink.settled > settled)
    }

    @Test func simulatedFixes_areNotStored() throws {
        let source = Source()
        for second in 0..<4 {
            let now = testStart.wall + .seconds(second)
            for report in try unpack(lines("gpsd-simulated.jsonl") { _ in now }) {
                source.report(report)
            }
            source.clock.advance(by: .seconds(1))
        }
        source.finish()
        #expect(source.sink.fixes.isEmpty && source.sink.times.isEmpty)
        #expect(source.board.state.value?.dropped ?? 0 >= 3)
        let detail = source.board.state.value?.detail
        #expect(detail == "GNSS receiver simulates its fixes: fixes not kept")
    }

    /// A position without satellites is no 3D fix, and no evidence for the time.
    @Test(arguments: [(1, 3), (5, 2), (6, 3)])
    func deadReckoning_isNoThirdDimension(status: Int, mode: Int) throws {
        let line = try lines("gpsd-simulated.jsonl") { _ in testStart.wall }[0]
            .replacingOccurrences(of: #""status":8"#, with: #""status":\#(status)"#)
        guard case .position(let position) = try unpack([line])[0] else {
            Issue.record("not a position")
            return
        }
        #expect(position.mode == mode && !position.isSimulated)
    }
}
