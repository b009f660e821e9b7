// The intake socket on real connections: answers, their order, and the cost of hostile programs.
import CLinux
import Foundation
import Glibc
import Records
import Support
import Testing

import Daemon
@testable import Host
@testable import Intake

@Suite struct IntakeServerTests {
    private static let accepted = #"{"accepted": 1}"#

    private static func line(_ number: Int, stream: String = "weather") -> String {
        #"{"stream":"\#(stream)","data":{"n":\#(number)}}"#
    }

    @Test func record_isAnsweredWhenTheDiskHasIt() throws {
        let fixture = try IntakeFixture()
        let peer = try fixture.connect()
        fixture.sink.hold()
        try peer.send(
            #"{"stream": "weather", "data": {"t": 21.50}, "timestamp": "2026-01-01T00:00:00Z"}"#
                + "\n"
        )
        try waitUntil("the record") { fixture.sink.isHolding }
        #expect(fixture.sink.kept.isEmpty)
        fixture.sink.release()
        #expect(try peer.answer() == Self.accepted)
        #expect(
            fixture.sink.kept == [
                UserRecord(
                    stream: "weather",
                    stamp: fixture.clock.stamp(),
                    given: WallTime(rfc3339: "2026-01-01T00:00:00Z"),
                    members: Array(#""t":21.50"#.utf8)
                )
            ]
        )
    }

    /// Also for a program whose lines beyond `max_rate` wait: it would wait for a person.
    @Test(arguments: [false, true])
    func fullDisk_isAnErrorWithItsCode_andATime(waits: Bool) throws {
        let fixture = try IntakeFixture()
        let peer = try fixture.connect()
        if waits { #expect(try peer.ask(#"{"wait": true}"#) == #"{"accepted": 0}"#) }
        fixture.sink.refuse(Failure("the disk is full", code: .storageFull))
        let refusal =
            #"{"error": "not kept: E004 the disk is full; send it again later", "retry_after_ms": 60000}"#
        #expect(try peer.ask(Self.line(1)) == refusal)
        fixture.sink.refuse(nil)
        #expect(try peer.ask(Self.line(2)) == Self.accepted)
        #expect(fixture.sink.kept.count == 1)
    }

    /// A batch too large for a small database would be refused for ever.
    @Test func batch_hasNoMoreBytesThanTheQueueHasRoomFor() throws {
        let fixture = try IntakeFixture(putBytes: 10_000)
        let peer = try fixture.connect()
        let text = String(repeating: "x", count: 1000)
        let line = #"{"stream":"weather","data":{"text":"\#(text)"}}"# + "\n"
        try peer.send(String(repeating: line, count: 60))
        for _ in 0..<60 { #expect(try peer.answer() == Self.accepted) }
        #expect(fixture.sink.kept.count == 60)
        #expect(fixture.sink.batches.allSatisfy { $0 <= 10 })
    }

    @Test func socket_isForTheGroupAlone_andGoesWithTheServer() throws {
        let fixture = try IntakeFixture()
        var status = stat()
        #expect(stat(fixture.path, &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o660)
        fixture.stop()
        #expect(access(fixture.path, F_OK) != 0)
        // A socket left by a crash does no harm.
        let again = try IntakeFixture()
        let second = try IntakeServer(
            path: again.path,
            streams: [],
            sink: FakeSink(),
            clock: again.clock
        )
        #expect(access(again.path, F_OK) == 0)
        second.lines.listener.remove()
    }

    /// Answers keep the order of the lines, even if a later line was decided long before.
    @Test func answers_comeInTheOrderOfTheLines() throws {
        let fixture = try IntakeFixture([
            IntakeFixture.stream("weather"), IntakeFixture.stream("door", bytes: 16),
        ])
        let peer = try fixture.connect()
        fixture.sink.hold()
        try peer.send(
            [
                Self.line(1), "nonsense", Self.line(2, stream: "wind"), Self.line(3),
                #"{"stream":"door","data":{"open":true,"n":1}}"#, "",
                #"{"stream":"weather","data":{"id":7}}"#, Self.line(4),
            ].joined(separator: "\n") + "\n"
        )
        try waitUntil("a batch") { fixture.sink.isHolding }
        fixture.sink.release()
        #expect(
            try peer.answers(8) == [
                Self.accepted,
                #"{"error": "not JSON at byte 1: a line is a JSON object with stream and data"}"#,
                #"{"error": "stream \"wind\" is not declared (declared: weather, door); "#
                    + #"[stream.wind] in the configuration declares it"}"#,
                Self.accepted,
                #"{"error": "too long: 19 bytes, stream door takes 16 (stream.door.max_record_bytes)"}"#,
                #"{"error": "not JSON at byte 1: the text ends before the object does"}"#,
                #"{"error": "refused at byte 29: the name \"id\" is reserved: "#
                    + #"the gateway writes id, timestamp and clock"}"#,
                Self.accepted,
            ]
        )
        #expect(
            fixture.sink.kept.map { String(decoding: $0.members, as: UTF8.self) } == [
                #""n":1"#, #""n":3"#, #""n":4"#,
            ]
        )
    }

    @Test func lineWithoutItsEnd_isALineWhenTheInputEnds() throws {
        let fixture = try IntakeFixture()
        let peer = try fixture.connect()
        try peer.send(Self.line(1) + "\n" + Self.line(2))
        #expect(try peer.answer() == Self.accepted)
        peer.endInput()
        #expect(try peer.answer() == Self.accepted)
        #expect(try peer.answer() == nil)
        #expect(fixture.sink.kept.count == 2)
    }

    @Test func overlongLine_isReportedOnce_andNextIsAccepted() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", bytes: 100)])
        let peer = try fixture.connect()
        let long = String(repeating: "x", count: 2_000_000)
        try peer.send(
            long + "\n" + Self.line(1) + "\n" + String(repeating: " ", count: 1125) + "\n"
        )
        let tooLong =
            #"{"error": "too long: a line takes 1124 bytes at most, by the largest max_record_bytes declared"}"#
        #expect(try peer.answers(3) == [tooLong, Self.accepted, tooLong])
    }

    @Test func stream_takesASecondsWorthAtOnce_thenItsRate() throws {
        let fixture = try IntakeFixture([
            IntakeFixture.stream("weather", rate: 20), IntakeFixture.stream("door", rate: 0.5),
        ])
        let peer = try fixture.connect()
        let tooFast =
            #"{"error": "too fast: stream weather takes 20 records per second "#
            + #"(stream.weather.max_rate); send it again later", "retry_after_ms": 50}"#
        try peer.send((0..<22).map { Self.line($0) + "\n" }.joined())
        #expect(
            try peer.answers(22) == Array(repeating: Self.accepted, count: 20) + [tooFast, tooFast]
        )
        // Each stream has its own rate, which all programs share.
        #expect(try peer.ask(Self.line(0, stream: "door")) == Self.accepted)
        #expect(try fixture.connect().ask(Self.line(0)) == tooFast)
        fixture.clock.advance(by: .milliseconds(100))
        try peer.send((0..<3).map { Self.line($0) + "\n" }.joined())
        #expect(try peer.answers(3) == [Self.accepted, Self.accepted, tooFast])
    }

    /// Each date is a file at the server, which begins so many per day for one stream.
    @Test func dates_areBoundedPerDay_eachStreamForItself() throws {
        let fixture = try IntakeFixture([
            IntakeFixture.stream("weather", rate: 5000), IntakeFixture.stream("door", rate: 5000),
        ])
        let peer = try fixture.connect()
        func line(_ day: Int, _ stream: String = "weather") -> String {
            let time = WallTime(milliseconds: Int64(day) * 86_400_000).rfc3339
            return #"{"stream":"\#(stream)","data":{"a":1},"timestamp":"\#(time)"}"# + "\n"
        }
        try peer.send((0..<1001).map { line($0) }.joined())
        let answers = try peer.answers(1001)
        #expect(answers.prefix(1000).allSatisfy { $0 == Self.accepted })
        let refusal = answers.last.flatMap { $0 } ?? ""
        #expect(refusal.contains("records of stream weather have named 1000 days"), "\(refusal)")
        // Known dates, records without one, and other streams go on.
        try peer.send(line(7) + Self.line(1) + "\n" + line(3000, "door"))
        #expect(try peer.answers(3) == Array(repeating: Self.accepted, count: 3))
        fixture.clock.advance(by: .seconds(86_400))
        #expect(try peer.ask(String(line(3000).dropLast())) == Self.accepted)
    }

    @Test(arguments: [(0.001, 1_000_000), (Double.leastNonzeroMagnitude, 365 * 86_400_000)])
    func rate_howeverSlow_hasADelay(perSecond: Double, milliseconds: Int) {
        let now = BootInstant(nanoseconds: 0)
        var rate = RecordRate(perSecond: perSecond, now: now)
        for _ in 0..<10 { #expect(rate.delay(at: now) == nil) }
        #expect(rate.delay(at: now) == .milliseconds(milliseconds))
    }

    @Test func refusedBatch_isReportedWithReason_andMayBeRetried() throws {
        let fixture = try IntakeFixture()
        let peer = try fixture.connect()
        fixture.sink.refuse("E004 no room\nleft")
        #expect(
            try peer.ask(Self.line(1))
                == #"{"error": "not kept: E004 no room left; send it again later"}"#
        )
        fixture.sink.refuse(nil)
        #expect(try peer.ask(Self.line(1)) == Self.accepted)
        #expect(fixture.sink.kept.count == 1)
    }

    /// Lines that arrive while a batch is written form the next batch, from all programs.
    @Test func recordsOfAllPrograms_goTogether() throws {
        let fixture = try IntakeFixture()
        let peers = try (0..<50).map { _ in try fixture.connect() }
        fixture.sink.hold()
        try peers[0].send(Self.line(0) + "\n")
        try waitUntil("the first batch") { fixture.sink.isHolding }
        for peer in peers { for number in 0..<10 { try peer.send(Self.line(number) + "\n") } }
        // Once this line has its answer, all lines before it were read.
        for peer in peers { try peer.send("[]\n") }
        let figures = { fixture.server.figures.value }
        try waitUntil("all lines") { figures().refused == 50 }
        fixture.sink.release()
        for (place, peer) in peers.enumerated() {
            let count = place == 0 ? 11 : 10
            #expect(try peer.answers(count) == Array(repeating: Self.accepted, count: count))
            #expect(try peer.answer()?.hasPrefix(#"{"error": "refused"#) == true)
        }
        #expect(fixture.sink.batches == [1, 500])
        let all = IntakeFigures(clients: 50, accepted: 501, refused: 50)
        try waitUntil("the figures") { figures() == all }
    }

    @Test func clients200_areAllServed() throws {
        let fixture = try IntakeFixture()
        let peers = try (0..<200).map { _ in try fixture.connect() }
        for round in 0..<25 {
            for (place, peer) in peers.enumerated() {
                try peer.send(Self.line(round * 200 + place) + "\n")
            }
        }
        for peer in peers {
            #expect(try peer.answers(25) == Array(repeating: Self.accepted, count: 25))
        }
        let numbers = fixture.sink.kept.compactMap {
            Int(String(decoding: $0.members.dropFirst(4), as: UTF8.self))
        }
        #expect(numbers.count == 5000)
        #expect(Set(numbers) == Set(0..<5000))
        // Records of one program keep their order.
        for place in 0..<200 {
            let own = numbers.filter { $0 % 200 == place }
            #expect(own == own.sorted())
        }
    }

    @Test func excessClient_isRejected_untilAnotherLeaves() throws {
        let fixture = try IntakeFixture(limits: .intake(clients: 3))
        var peers = try (0..<3).map { _ in try fixture.connect() }
        for peer in peers { #expect(try peer.ask(Self.line(1)) == Self.accepted) }
        let other = try fixture.connect()
        #expect(
            try other.answer()
                == #"{"error": "3 programs are connected already; try again later"}"#
        )
        #expect(try other.answer() == nil)
        peers.removeLast()
        try waitUntil("room") { fixture.server.figures.value.clients == 2 }
        #expect(try fixture.connect().ask(Self.line(1)) == Self.accepted)
    }
}
