// `waypost put` against the real socket: each line is counted, each failure has its own message.
import CLinux
import Foundation
import Glibc
import Records
import Support
import Testing

@testable import Daemon
@testable import Host
@testable import Intake
@testable import Setup
@testable import Status

@Suite struct IntakeClientTests {
    /// The result of a run of the command.
    private struct Run {
        var outcome: IntakeClient.Outcome?
        var reported: [String] = []
        var failure: String?
    }

    private func put(
        _ fixture: IntakeFixture,
        from descriptor: Int32,
        stream: UserStream = IntakeFixture.stream("weather"),
        options: IntakeClient.Options = IntakeClient.Options()
    ) -> Run {
        var run = Run()
        let client = IntakeClient(
            fixture.configuration,
            stream: stream,
            options: options,
            warn: { run.reported.append($0) }
        )
        do {
            run.outcome = try client.put(from: descriptor)
        } catch {
            run.failure = "\(error)"
        }
        return run
    }

    private func put(
        _ fixture: IntakeFixture,
        _ text: String,
        stream: UserStream = IntakeFixture.stream("weather"),
        options: IntakeClient.Options = IntakeClient.Options()
    ) throws -> Run {
        let path = fixture.folder + "/input"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let file = Descriptor(owning: open(path, O_RDONLY))
        return put(fixture, from: file.number, stream: stream, options: options)
    }

    private func members(_ fixture: IntakeFixture) -> [String] {
        fixture.sink.kept.map { String(decoding: $0.members, as: UTF8.self) }
    }

    @Test func eachLine_isARecord() throws {
        let fixture = try IntakeFixture()
        let run = try put(
            fixture,
            "\u{FEFF}{\"t\": 21.50}\r\n\n  \n {\"a\":{\"timestamp\":1}}\n{}"
        )
        #expect(run.reported == [])
        #expect(run.outcome == IntakeClient.Outcome(accepted: 3))
        #expect(members(fixture) == [#""t":21.50"#, #""a":{"timestamp":1}"#, ""])
        #expect(try put(fixture, "").outcome == IntakeClient.Outcome())
    }

    @Test func refusedLines_areReportedByNumber() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("weather", bytes: 20)])
        let run = try put(
            fixture,
            [
                #"{"n":1}"#, #"{"n":2"#, "", #"{"id":3}"#, "[4]",
                #"{"n":5},"timestamp":"2026-01-01T00:00:00Z""#, #"{"text":"far too long"}"#,
                #"{"n":8}"#,
            ].joined(separator: "\n"),
            stream: IntakeFixture.stream("weather")
        )
        #expect(
            Set(run.reported) == [
                "line 2: not JSON at byte 7: the text ends before the object does",
                "line 4: refused at byte 2: the name \"id\" is reserved: "
                    + "the gateway writes id, timestamp and clock",
                "line 5: refused at byte 1: a line is a JSON object, and this is an array",
                "line 6: not JSON at byte 8: more text after the object",
                "line 7: too long: 23 bytes, stream weather takes 20 (stream.weather.max_record_bytes)",
            ]
        )
        #expect(run.outcome == IntakeClient.Outcome(accepted: 2, refused: 5))
        #expect(members(fixture) == [#""n":1"#, #""n":8"#])
    }

    @Test func longInput_isAllThere_inItsOrder() throws {
        let fixture = try IntakeFixture()
        let run = try put(fixture, (0..<20_000).map { "{\"n\":\($0)}\n" }.joined())
        #expect(run.outcome == IntakeClient.Outcome(accepted: 20_000))
        #expect(members(fixture) == (0..<20_000).map { "\"n\":\($0)" })
    }

    @Test func input_ofAProgramThatGoesOn_isPutAsItComes() throws {
        let fixture = try IntakeFixture()
        let pipe = Pipe()
        let ended = StateBox(false)
        let sink = fixture.sink
        Thread.detachNewThread {
            for number in 1...3 {
                try? pipe.fileHandleForWriting.write(contentsOf: Data("{\"n\":\(number)}\n".utf8))
                try? waitUntil("record \(number)") { sink.kept.count == number }
            }
            try? pipe.fileHandleForWriting.close()
            ended.update { $0 = true }
        }
        let run = put(fixture, from: pipe.fileHandleForReading.fileDescriptor)
        #expect(run.outcome == IntakeClient.Outcome(accepted: 3))
        try waitUntil("its end") { ended.value }
    }

    @Test func input_thatCannotBeRead_isNoEmptyInput() throws {
        let fixture = try IntakeFixture()
        let folder = Descriptor(owning: open(fixture.folder, O_RDONLY))
        #expect(
            put(fixture, from: folder.number).failure
                == "read: Is a directory (errno 21), after line 0"
        )
    }

    @Test func absentGateway_isReportedWithNextStep() throws {
        let fixture = try IntakeFixture()
        let path = fixture.path
        fixture.stop()
        let run = try put(fixture, "{}\n")
        #expect(run.outcome == nil)
        #expect(
            run.failure
                == "waypost is not running (nothing answers at \(path)); `systemctl start waypost`"
        )
        // A crash leaves the socket's file.
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        _ = UnixSocket.withAddress(Array(path.utf8)) { bind(number, $0, $1) }
        close(number)
        #expect(try put(fixture, "{}\n").failure == run.failure)
    }

    @Test func tableNotYetLoaded_isReported() throws {
        let fixture = try IntakeFixture()
        fixture.stop()
        let lock = try Gateway.lock(fixture.folder)
        let status = try StatusPublication(gather: { nil }) {
            [configuration = fixture.configuration] in
            _ = ($0, $1)
            return Snapshot.nothing(configuration, version: "test")
        }
        let control = try ControlPlane(path: fixture.configuration.socketPath, status: status) {
            $1(ControlReply())
        }
        try status.start()
        defer {
            control.stop(by: SystemClock().now() + StoppableThread.stopLimit)
            status.stop()
        }
        #expect(
            try put(fixture, "{}\n").failure
                == "the running gateway does not know [stream.weather] yet; `systemctl reload waypost`"
        )
        _ = consume lock
    }

    @Test func unknownStream_isReportedForEachLine() throws {
        let fixture = try IntakeFixture([IntakeFixture.stream("door")])
        let run = try put(fixture, "{}\n{}\n")
        #expect(run.outcome == IntakeClient.Outcome(refused: 2))
        #expect(
            run.reported.first == "line 1: stream \"weather\" is not declared (declared: door); "
                + "[stream.weather] in the configuration declares it"
        )
    }

    /// Root may connect anywhere, so this runs only as an ordinary user.
    @Test(.enabled(if: geteuid() != 0)) func missingPermission_isReportedWithTheGroup() throws {
        let fixture = try IntakeFixture()
        chmod(fixture.path, 0)
        #expect(try put(fixture, "{}\n").failure?.contains("usermod -aG waypost") == true)
    }

    /// A stop between two lines loses nothing; unanswered lines are reported and never sent twice.
    @Test func stoppedGateway_leavesNoLineUnreported() throws {
        let fixture = try IntakeFixture(limits: .intake(stop: .zero))
        let pipe = Pipe()
        let (sink, thread) = (fixture.sink, fixture.thread)
        let path = fixture.path
        let input = pipe.fileHandleForWriting
        let isSent = StateBox(false)
        let stop = try StopSignal()
        Thread.detachNewThread {
            try? input.write(contentsOf: Data("{\"n\":1}\n".utf8))
            try? waitUntil("the first") { sink.kept.count == 1 }
            sink.hold()
            try? input.write(contentsOf: Data("{\"n\":2}\n{\"n\":3}\n".utf8))
            try? waitUntil("the second") { sink.isHolding }
            isSent.update { $0 = true }
        }
        Thread.detachNewThread {
            try? waitUntil("the records") { isSent.value }
            thread.stop()
            let later = try? IntakeServer(
                path: path,
                streams: [IntakeFixture.stream("weather")],
                sink: sink,
                clock: SystemClock()
            )
            sink.release()
            try? input.write(contentsOf: Data("{\"n\":4}\n".utf8))
            try? input.close()
            later?.run(until: stop)
        }
        let run = put(fixture, from: pipe.fileHandleForReading.fileDescriptor)
        stop.raise()
        #expect(run.failure == nil)
        #expect(run.outcome == IntakeClient.Outcome(accepted: 2, refused: 2))
        #expect(
            run.reported.allSatisfy { $0.contains("not known whether") || $0.contains("not kept") }
        )
        #expect(members(fixture).filter { $0 == #""n":4"# }.count == 1)
        #expect(Set(members(fixture)).count == members(fixture).count)
    }
}
