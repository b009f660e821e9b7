// `waypost put` while the gateway is stopped, starts, stops or is slower than the input.
import CLinux
import Foundation
import Glibc
import Records
import Support
import Testing

@testable import Daemon
@testable import Host
@testable import Intake

@Suite struct IntakeWaitTests {
    /// Runs `put` with a pipe as its input, on its own thread.
    private final class Pipeline: Sendable {
        struct State: Sendable {
            var reported: [String] = []
            var outcome: IntakeClient.Outcome?
            var failure: String?
        }

        let state = StateBox(State())
        private let input = Pipe()

        init(_ fixture: IntakeFixture, _ change: (inout IntakeClient.Options) -> Void = { _ in }) {
            var options = IntakeClient.Options()
            options.noticeAfter = .milliseconds(1)
            change(&options)
            let (configuration, state) = (fixture.configuration, state)
            let reading = input.fileHandleForReading
            Thread.detachNewThread { [options] in
                let client = IntakeClient(
                    configuration,
                    stream: IntakeFixture.stream("weather"),
                    options: options,
                    warn: { line in state.update { $0.reported.append(line) } }
                )
                do {
                    let outcome = try client.put(from: reading.fileDescriptor)
                    state.update { $0.outcome = outcome }
                } catch {
                    state.update { $0.failure = "\(error)" }
                }
            }
        }

        func write(_ numbers: ClosedRange<Int>) throws {
            let lines = numbers.map { "{\"n\":\($0)}\n" }.joined()
            try input.fileHandleForWriting.write(contentsOf: Data(lines.utf8))
        }

        /// Ends the input; returns the outcome.
        func end() throws -> State {
            try input.fileHandleForWriting.close()
            try waitUntil("the end of put") {
                state.value.outcome != nil || state.value.failure != nil
            }
            return state.value
        }
    }

    private func numbers(_ fixture: IntakeFixture) -> [Int] {
        fixture.sink.kept.compactMap {
            Int(String(decoding: $0.members.dropFirst(4), as: UTF8.self))
        }
    }

    /// Another server in place of the bench's, which was stopped.
    private func next(_ fixture: IntakeFixture) throws -> StoppableThread {
        let server = try IntakeServer(
            path: fixture.path,
            streams: [IntakeFixture.stream("weather")],
            sink: fixture.sink,
            clock: SystemClock()
        )
        return try StoppableThread("intake") { server.run(until: $0) }
    }

    @Test func gatewayThatIsAway_isWaitedFor_andReportedOnce() throws {
        let fixture = try IntakeFixture(limits: .intake(stop: .seconds(60)))
        let put = Pipeline(fixture)
        try put.write(1...1)
        try waitUntil("the first line") { numbers(fixture) == [1] }
        fixture.stop()
        try put.write(2...3)
        let isAway = { (line: String) in line.contains("not running") }
        try waitUntil("the report") { put.state.value.reported.contains(where: isAway) }
        let later = try next(fixture)
        defer { later.stop() }
        try waitUntil("the other lines") { numbers(fixture) == [1, 2, 3] }
        let end = try put.end()
        #expect(end.outcome == IntakeClient.Outcome(accepted: 3))
        #expect(
            end.reported.filter(isAway) == [
                "waiting with line 2: waypost is not running (nothing answers at \(fixture.path)); "
                    + "`systemctl start waypost`"
            ]
        )
    }

    @Test func timeout_endsTheWaiting() throws {
        let fixture = try IntakeFixture()
        fixture.stop()
        let put = Pipeline(fixture) { $0.timeout = .milliseconds(1) }
        try put.write(1...2)
        let failure = try #require(try put.end().failure)
        #expect(failure.hasPrefix("line 1 and those after it were not put: waypost is not running"))
    }

    @Test func timeout_saysOfLinesThatWereSentThatTheyMayBeKept() throws {
        let fixture = try IntakeFixture()
        fixture.sink.hold()
        let put = Pipeline(fixture) { $0.timeout = .seconds(1) }
        try put.write(1...3)
        #expect(
            try put.end().failure
                == "lines 1 to 3: not known whether they were kept; those after line 3 were not put: "
                + "waypost has accepted nothing since; `waypost status` shows the state of the gateway"
        )
        fixture.sink.release()
    }

    /// A gateway at its connection limit has read nothing of the program.
    @Test(arguments: [true, false])
    func fullGateway_isWaitedFor_andReportedOnce(waitsForRate: Bool) throws {
        let fixture = try IntakeFixture(limits: .intake(clients: 1))
        var others = [try fixture.connect()]
        try waitUntil("the other program") { fixture.server.figures.value.clients == 1 }
        let put = Pipeline(fixture) {
            $0.waitsForRate = waitsForRate
            $0.noticeAfter = .seconds(1)
        }
        try put.write(1...2000)
        try waitUntil("the report") { !put.state.value.reported.isEmpty }
        others.removeAll()
        let end = try put.end()
        #expect(
            end.reported == [
                "waiting with line 1: 1 programs are connected already; try again later"
            ]
        )
        #expect(end.outcome == IntakeClient.Outcome(accepted: 2000))
        #expect(numbers(fixture) == Array(1...2000))
    }

    /// No line is sent before the greeting is answered, so none is in doubt.
    @Test func gatewayThatClosesWithoutAWord_isTriedAgain() throws {
        let fixture = try IntakeFixture()
        fixture.stop()
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        _ = UnixSocket.withAddress(Array(fixture.path.utf8)) { bind(number, $0, $1) }
        listen(number, 1)
        let put = Pipeline(fixture)
        try put.write(1...3)
        var greeting = [UInt8](repeating: 0, count: 4096)
        let program = accept(number, nil, nil)
        #expect(recv(program, &greeting, greeting.count, 0) == IntakeLine.waitForRate.count + 1)
        close(program)
        close(number)
        let later = try next(fixture)
        defer { later.stop() }
        let end = try put.end()
        #expect(end.outcome == IntakeClient.Outcome(accepted: 3))
        #expect(end.reported.allSatisfy { $0.hasPrefix("waiting with line 1: ") })
    }

    @Test func timeout_alsoWaitsForAGatewayThatIsNotThereYet() throws {
        let fixture = try IntakeFixture()
        fixture.stop()
        let put = Pipeline(fixture) { $0.timeout = .seconds(600) }
        try put.write(1...1)
        try waitUntil("the report") { !put.state.value.reported.isEmpty }
        let later = try next(fixture)
        defer { later.stop() }
        #expect(try put.end().outcome == IntakeClient.Outcome(accepted: 1))
    }

    @Test func gatewayThatStarts_isWaitedFor_andSaidToBeStarting() throws {
        let fixture = try IntakeFixture()
        fixture.stop()
        let lock = try Gateway.lock(fixture.folder)
        let put = Pipeline(fixture)
        try put.write(1...1)
        try waitUntil("the report") { !put.state.value.reported.isEmpty }
        let later = try next(fixture)
        defer { later.stop() }
        let end = try put.end()
        #expect(end.outcome == IntakeClient.Outcome(accepted: 1))
        #expect(
            end.reported == [
                "waiting with line 1: waypost is starting; `waypost status` says what it waits for"
            ]
        )
        _ = consume lock
    }

    /// Lines that a stopping gateway has read and not stored, or not read, go to the next one.
    @Test func stop_costsNoLine_andDoublesNone() throws {
        let fixture = try IntakeFixture(limits: .intake(stop: .seconds(60)))
        let put = Pipeline(fixture)
        try put.write(1...1)
        try waitUntil("the first line") { numbers(fixture) == [1] }
        fixture.sink.hold()
        try put.write(2...2)
        try waitUntil("the second") { fixture.sink.isHolding }
        // More lines than are read ahead of the disk.
        try put.write(3...2000)
        let (sink, path) = (fixture.sink, fixture.path)
        Thread.detachNewThread {
            try? waitUntil("the stop") { access(path, F_OK) != 0 }
            sink.release()
        }
        fixture.stop()
        let later = try next(fixture)
        defer { later.stop() }
        let end = try put.end()
        #expect(end.outcome == IntakeClient.Outcome(accepted: 2000))
        #expect(numbers(fixture) == Array(1...2000))
    }

    /// Lines for six seconds at the stream's rate.
    @Test func inputFasterThanTheRate_isSlowedDown_inItsOrder() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", rate: 20)])
        let put = Pipeline(fixture)
        try put.write(1...120)
        let nudge = try fixture.connect()
        for second in 1...6 {
            try waitUntil("second \(second)") { numbers(fixture).count == 20 * second }
            fixture.clock.advance(by: .seconds(1))
            _ = try nudge.ask("[]")
        }
        let end = try put.end()
        #expect(end.reported == [] || end.reported.allSatisfy { $0.hasPrefix("waiting with line") })
        #expect(end.outcome == IntakeClient.Outcome(accepted: 120))
        #expect(numbers(fixture) == Array(1...120))
    }

    @Test func noWait_refusesWhatIsFasterThanTheRate() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", rate: 20)])
        let put = Pipeline(fixture) { $0.waitsForRate = false }
        try put.write(1...22)
        let end = try put.end()
        #expect(end.outcome == IntakeClient.Outcome(accepted: 20, refused: 2))
        #expect(end.reported.last?.hasPrefix("line 22: too fast: ") == true)
    }

    /// A line delayed by a slow stream is accepted at once if a reload makes the stream faster.
    @Test func reload_letsASlowedLineGo() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", rate: 0.001)])
        let put = Pipeline(fixture)
        try put.write(1...11)
        try waitUntil("what may come at once") { numbers(fixture).count == 10 }
        fixture.server.declare([IntakeFixture.stream("weather", rate: 20)])
        #expect(try put.end().outcome == IntakeClient.Outcome(accepted: 11))
    }
}
