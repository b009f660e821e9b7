// Slow, vanished, silent and hostile programs, and a gateway that stops or reloads.
import Foundation
import Glibc
import Host
import Queue
import QueueSupport
import Records
import Support
import Testing

import Daemon
@testable import Intake

@Suite struct IntakeFaultTests {
    private static let accepted = #"{"accepted": 1}"#

    private static func line(_ number: Int, stream: String = "weather") -> String {
        #"{"stream":"\#(stream)","data":{"n":\#(number)}}"# + "\n"
    }

    /// The program sends and disconnects before its answers: all its lines are stored.
    @Test func vanishedProgram_leavesItsRecords() throws {
        let fixture = try IntakeFixture()
        fixture.sink.hold()
        do {
            let peer = try fixture.connect()
            try peer.send(
                (0..<2000).map { Self.line($0) }.joined() + #"{"stream":"weather","data":{}}"#
            )
        }
        try waitUntil("the first batch") { fixture.sink.isHolding }
        fixture.sink.release()
        try waitUntil("all records") { fixture.sink.kept.count == 2001 }
        try waitUntil("its end") { fixture.server.figures.value.clients == 0 }
        #expect(try fixture.connect().ask(String(Self.line(1).dropLast())) == Self.accepted)
    }

    /// Delayed lines of a vanished program are dropped, since no one would know; earlier ones stay.
    @Test func vanishedProgram_takesItsSlowedLinesWithIt() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", rate: 20)])
        fixture.sink.hold()
        do {
            let peer = try fixture.connect()
            #expect(try peer.ask(#"{"wait": true}"#) == #"{"accepted": 0}"#)
            try peer.send((0..<5000).map { Self.line($0) }.joined())
            try waitUntil("the first batch") { fixture.sink.isHolding }
        }
        let nudge = try fixture.connect()
        #expect(try nudge.ask("[]")?.contains("refused") == true)
        fixture.sink.release()
        try waitUntil("its end") { fixture.server.figures.value.clients == 1 }
        fixture.clock.advance(by: .seconds(60))
        #expect(try nudge.ask(String(Self.line(9999).dropLast())) == Self.accepted)
        let kept = fixture.sink.kept.map { String(decoding: $0.members, as: UTF8.self) }
        #expect(kept == ((0..<20) + [9999]).map { "\"n\":\($0)" })
    }

    /// The program has closed its input and still reads answers.
    @Test func halfClosedProgram_hasItsSlowedLinesKept() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", rate: 20)])
        let peer = try fixture.connect()
        try peer.send("{\"wait\": true}\n" + (0..<50).map { Self.line($0) }.joined())
        peer.endInput()
        let nudge = try fixture.connect()
        for second in 0..<2 {
            try waitUntil("second \(second)") { fixture.sink.kept.count == 20 * (second + 1) }
            fixture.clock.advance(by: .seconds(1))
            _ = try nudge.ask("[]")
        }
        let answers = [#"{"accepted": 0}"#] + Array(repeating: Self.accepted, count: 50)
        #expect(try peer.answers(51) == answers)
        #expect(try peer.answer() == nil)
        #expect(fixture.sink.kept.count == 50)
    }

    /// It is read at most 1024 lines ahead of the disk; others are served in the meantime.
    @Test func programAheadOfTheDisk_waits() throws {
        let fixture = try IntakeFixture()
        let eager = try fixture.connect()
        fixture.sink.hold()
        let lines = Array((0..<50_000).map { Self.line($0) }.joined().utf8)
        var sent = 0
        // As much as the socket and the server can hold.
        try waitUntil("the socket to be full") {
            let more = eager.trySend(lines[sent...].prefix(64 << 10))
            sent += more
            guard more == 0 else { return false }
            return fixture.sink.isHolding
        }
        #expect(sent < lines.count)
        let other = try fixture.connect()
        try other.send("[]\n")
        #expect(try other.answer()?.contains("refused") == true)
        #expect(fixture.sink.batches.allSatisfy { $0 <= 1024 })
        fixture.sink.release()
        for _ in 0..<50_000 {
            sent += max(0, eager.trySend(lines[sent...].prefix(64 << 10)))
            #expect(try eager.answer() == Self.accepted)
        }
        #expect(fixture.sink.kept.count == 50_000)
    }

    @Test func programThatReadsNoAnswers_isNotWaitedFor() throws {
        let fixture = try IntakeFixture()
        let deaf = try fixture.connect()
        let junk = Array(String(repeating: "\n", count: 32 << 10).utf8)[...]
        let other = try fixture.connect()
        var sent = 0
        // Full, and still full after many turns of the server.
        try waitUntil("its socket to be full") {
            let more = deaf.trySend(junk)
            sent += more
            for _ in 0..<20 { _ = try other.ask("[]") }
            return more == 0 && deaf.trySend(junk) == 0
        }
        #expect(sent < 2 << 20)
        try waitUntil("its end") {
            fixture.clock.advance(by: .seconds(31))
            _ = try other.ask("[]")
            return deaf.trySend(junk) < 0
        }
    }

    /// Many programs send part of a line each, and never its end.
    @Test func halfLines_holdUpNobody() throws {
        let fixture = try IntakeFixture()
        let slow = try (0..<100).map { _ in try fixture.connect() }
        for peer in slow { try peer.send(#"{"stream":"wea"#) }
        let peer = try fixture.connect()
        for number in 0..<100 {
            #expect(try peer.ask(String(Self.line(number).dropLast())) == Self.accepted)
        }
        for peer in slow { try peer.send(#"ther","data":{}}"# + "\n") }
        for peer in slow { #expect(try peer.answer() == Self.accepted) }
    }

    @Test func silentProgram_isDisconnected_unlessTheDiskIsSlow() throws {
        let fixture = try IntakeFixture()
        let silent = try fixture.connect()
        let waiting = try fixture.connect()
        try waitUntil("both") { fixture.server.figures.value.clients == 2 }
        fixture.sink.hold()
        try waiting.send(Self.line(1))
        try waitUntil("the record") { fixture.sink.isHolding }
        fixture.clock.advance(by: .seconds(601))
        let nudge = try fixture.connect()
        #expect(try silent.answer() == nil)
        fixture.sink.release()
        #expect(try waiting.answer() == Self.accepted)
        #expect(try nudge.ask(String(Self.line(2).dropLast())) == Self.accepted)
    }

    @Test(arguments: [1, 2] as [UInt64])
    func anyBytes_areAnsweredALineALine(seed: UInt64) throws {
        let fixture = try IntakeFixture()
        let peer = try fixture.connect()
        var state = seed
        var lines = 0
        for _ in 0..<200 {
            var bytes = Array(Self.line(7).utf8.dropLast())
            for _ in 0..<4 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes[Int(state >> 33) % bytes.count] = UInt8(truncatingIfNeeded: state >> 25)
            }
            lines += bytes.count { $0 == 10 } + 1
            try peer.send(bytes + [10])
        }
        for _ in 0..<lines {
            let answer = try #require(try peer.answer())
            let object = try JSONSerialization.jsonObject(with: Data(answer.utf8)) as? [String: Any]
            #expect(object?.count == 1)
            #expect(object?["accepted"] as? Int == 1 || object?["error"] is String)
        }
    }

    @Test func stop_acknowledgesStoredLines_andRejectsTheRest() throws {
        let fixture = try IntakeFixture(limits: .intake(stop: .seconds(60)))
        let peer = try fixture.connect()
        fixture.sink.hold()
        try peer.send(Self.line(1))
        try waitUntil("the first batch") { fixture.sink.isHolding }
        try peer.send(Self.line(2) + "[]\n")
        try waitUntil("the lines") { fixture.server.figures.value.refused == 1 }
        let sink = fixture.sink
        let path = fixture.path
        Thread.detachNewThread {
            // The stop has begun once the socket is gone.
            try? waitUntil("the stop") { access(path, F_OK) != 0 }
            sink.release()
        }
        fixture.stop()
        #expect(try peer.answer() == Self.accepted)
        #expect(
            try peer.answer()
                == #"{"error": "not kept: the gateway stops; send it again when it is back"}"#
        )
        #expect(try peer.answer()?.contains("refused") == true)
        #expect(try peer.answer() == nil)
        #expect(fixture.sink.kept.count == 1)
    }

    @Test func stop_waitsForNoDiskForever() throws {
        let fixture = try IntakeFixture(limits: .intake(stop: .milliseconds(10)))
        let peer = try fixture.connect()
        fixture.sink.hold()
        try peer.send(Self.line(1))
        try waitUntil("the record") { fixture.sink.isHolding }
        fixture.stop()
        #expect(try peer.answer() == nil)
        // The disk commits all the same, without an answer.
        fixture.sink.release()
        #expect(fixture.sink.kept.count == 1)
    }

    @Test func reload_changesWhatIsTaken_andProgramsStay() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", rate: 10)])
        let peer = try fixture.connect()
        fixture.sink.hold()
        try peer.send((0..<10).map { Self.line($0) }.joined())
        try waitUntil("the records") { fixture.sink.isHolding }
        fixture.server.declare([
            IntakeFixture.stream("weather", rate: 10), IntakeFixture.stream("door"),
        ])
        fixture.sink.release()
        #expect(try peer.answers(10) == Array(repeating: Self.accepted, count: 10))
        #expect(try peer.ask(String(Self.line(1, stream: "door").dropLast())) == Self.accepted)
        // A reload does not reset its rate.
        #expect(try peer.ask(String(Self.line(1).dropLast()))?.contains("too fast") == true)
        fixture.server.declare([IntakeFixture.stream("door")])
        try waitUntil("the reload") {
            try peer.ask(String(Self.line(1).dropLast()))?.contains("not declared") == true
        }
    }

    /// A device has a limited number of stream numbers in its life.
    @Test func streamThatIsOneTooMany_isRefusedForGood_andAlone() throws {
        let temporary = TemporaryFolder()
        let queue = try Queue(at: temporary.path + "/queue.sqlite") {
            $0.userStreams = (1...961).map { DeclaredStream(name: "s\($0)", wire: "s\($0)") }
        }
        defer { queue.close() }
        let server = try IntakeServer(
            path: temporary.path + "/intake",
            streams: [IntakeFixture.stream("s1"), IntakeFixture.stream("s961")],
            sink: queue,
            clock: SystemClock()
        )
        let thread = try StoppableThread("intake") { server.run(until: $0) }
        defer { thread.stop() }
        let peer = try IntakePeer(temporary.path + "/intake")
        try peer.send([1, 961, 1].map { Self.line(1, stream: "s\($0)") }.joined())
        let answers = try peer.answers(3)
        #expect([answers[0], answers[2]] == [Self.accepted, Self.accepted])
        let refusal = answers[1] ?? ""
        #expect(refusal.contains("960 streams") && !refusal.contains("later"), "\(refusal)")
    }

    @Test func intake_isThereWhileStreamsAreDeclared() throws {
        let fixture = try IntakeFixture()
        let folder = fixture.folder + "/run"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let intake = IntakeService(directory: folder, sink: fixture.sink, clock: fixture.clock)
        let isThere = { access(folder + "/intake", F_OK) == 0 }
        try intake.declare([])
        #expect(!isThere())
        try intake.declare([IntakeFixture.stream("weather")])
        let peer = try IntakePeer(folder + "/intake")
        #expect(try peer.ask(String(Self.line(1).dropLast())) == Self.accepted)
        try intake.declare([IntakeFixture.stream("weather"), IntakeFixture.stream("door")])
        try waitUntil("the reload") {
            try peer.ask(String(Self.line(1, stream: "door").dropLast())) == Self.accepted
        }
        try intake.declare([])
        #expect(!isThere())
        #expect(try peer.answer() == nil)
        #expect(intake.figures == nil)
    }

    @Test func program_hasItsShareOfATurn_andNoMore() throws {
        let fixture = try IntakeFixture()
        let server = try IntakeServer(
            path: fixture.folder + "/by-hand",
            streams: [IntakeFixture.stream("weather")],
            sink: fixture.sink,
            clock: fixture.clock
        )
        let handler = IntakeHandler(server, [IntakeFixture.stream("weather")])
        let (loop, stop) = (LineLoop(server.lines, handler), try StopSignal())
        let peer = try IntakePeer(fixture.folder + "/by-hand")
        loop.turn(stop)
        try peer.send(String(repeating: "x\n", count: 600))
        loop.turn(stop)
        #expect(server.figures.value.refused == LineLimits.pipeline.linesATurn)
        while server.figures.value.refused < 600 { loop.turn(stop) }
    }
}
