// Parsing of one line of the intake socket.
import Host
import Records
import Testing

import Daemon
@testable import Intake

@Suite struct IntakeLineTests {
    private func read(_ text: String) throws -> IntakeLine { try IntakeLine(Array(text.utf8)) }

    private func problem(_ text: String) -> String {
        do throws(IntakeError) {
            _ = try IntakeLine(Array(text.utf8))
            return "taken"
        } catch {
            return error.message
        }
    }

    @Test func line_givesStreamMembersAndTime() throws {
        let line = try read(
            #"{"stream": "weather", "data": {"temperature_c": 21.50, "n": {"a": [1, 2]}}, "#
                + #""timestamp": "2026-11-21T05:30:07.123+01:00"}"#
        )
        #expect(line.stream == "weather")
        #expect(line.given == WallTime(milliseconds: 1_795_235_407_123))
        #expect(
            String(decoding: line.members, as: UTF8.self)
                == #""temperature_c":21.50,"n":{"a":[1,2]}"#
        )
    }

    @Test(arguments: [
        #"{"data":{"a":1},"stream":"s"}"#, #"{"stream":"s","data":{"a":1}}"#,
        " {\t\"data\" :{\"a\": 1 }, \"stream\":\"s\"}\r",
        #"{"\u0073tream":"\u0073","data":{"a":1}}"#,
    ])
    func members_comeInAnyOrderAndForm(text: String) throws {
        let line = try read(text)
        #expect(line.stream == "s")
        #expect(line.given == nil)
        #expect(line.members == Array(#""a":1"#.utf8))
    }

    @Test func object_mayBeEmpty() throws {
        #expect(try read(#"{"stream":"s","data":{}}"#).members.isEmpty)
    }

    @Test(arguments: [
        ("", "not JSON at byte 1: the text ends before the object does"),
        (
            "[]",
            "refused at byte 1: a line is a JSON object with stream and data, and this is an array"
        ),
        (
            "21.5",
            "refused at byte 1: a line is a JSON object with stream and data, and this is a number"
        ),
        ("{}", "refused at byte 3: stream is missing: the name of a stream"),
        (#"{"stream":"s"}"#, "refused at byte 15: data is missing: a JSON object"),
        (#"{"data":{}}"#, "refused at byte 12: stream is missing: the name of a stream"),
        (#"{"stream":7,"data":{}}"#, "refused at byte 11: stream is a text, and this is a number"),
        (
            #"{"stream":"s","data":[1]}"#,
            "refused at byte 22: data is a JSON object, and this is an array"
        ),
        (
            #"{"stream":"s","data":null}"#,
            "refused at byte 22: data is a JSON object, and this is null"
        ),
        (
            #"{"stream":"s","data":{},"color":1}"#,
            "refused at byte 25: \"color\" is none of stream, data, timestamp and boottime_ns"
        ),
        (
            #"{"stream":"s","stream":"t","data":{}}"#,
            "refused at byte 15: duplicate name \"stream\", or one that differs only in case"
        ),
        (
            #"{"stream":"s","data":{"id":1}}"#,
            "refused at byte 23: the name \"id\" is reserved: the gateway writes id, timestamp and clock"
        ),
        (
            #"{"stream":"s","data":{"a":1,"\u0063lock":1}}"#,
            "refused at byte 29: the name \"clock\" is reserved: the gateway writes id, timestamp and clock"
        ),
        (
            #"{"stream":"s","data":{"ID":4}}"#,
            "refused at byte 23: the name \"ID\" is reserved: the gateway writes id, timestamp and clock"
        ),
        (#"{"stream":"s","data":{"":1}}"#, "refused at byte 23: a member has no name"),
        (
            #"{"stream":"s","data":{},"timestamp":7}"#,
            "refused at byte 37: timestamp is a text such as \"2026-11-21T04:30:07.123Z\", and this is a number"
        ),
        (#"{"stream":"s","data":{"a":1}} x"#, "not JSON at byte 31: more text after the object"),
        (
            #"{"stream":"s","data":{"a":01}}"#,
            "not JSON at byte 28: a number with a leading zero"
        ),
    ])
    func wrongLine_isToldWithPlaceAndReason(text: String, message: String) {
        #expect(problem(text) == message)
    }

    @Test(arguments: [
        "2026-02-30T00:00:00Z", "1969-12-31T23:59:59Z", "2201-01-01T00:00:00Z", "now", "",
        "2026-11-21T04:30:07", "1970-01-01T00:00:00+00:01",
    ])
    func time_isOneThatThereIs(text: String) {
        let message = problem(#"{"stream":"s","data":{},"timestamp":"\#(text)"}"#)
        #expect(message.contains("of the years 1970 to 2200"))
    }

    /// At the top level these names are reserved for the gateway; deeper they are free.
    @Test func reservedNames_areFreeBelow() throws {
        let text = #"{"stream":"s","data":{"a":{"id":1,"timestamp":2,"clock":3}}}"#
        #expect(try read(text).members == Array(#""a":{"id":1,"timestamp":2,"clock":3}"#.utf8))
    }

    @Test func objectOf16Levels_isTaken_andNoneDeeper() {
        let inner = { (levels: Int) in
            String(repeating: "{\"a\":", count: levels - 1) + "{}"
                + String(repeating: "}", count: levels - 1)
        }
        #expect(problem("{\"stream\":\"s\",\"data\":\(inner(16))}") == "taken")
        #expect(
            problem("{\"stream\":\"s\",\"data\":\(inner(17))}").contains("nested deeper than 17")
        )
        #expect(throws: Never.self) { try IntakeLine.members(of: Array(inner(16).utf8)) }
        #expect(throws: IntakeError.self) { try IntakeLine.members(of: Array(inner(17).utf8)) }
    }

    /// The content of a `put` line stays within `data`.
    @Test func envelope_isTheClientsOwn() throws {
        let members = try IntakeLine.members(of: Array(#" {"t" : 1.0} "#.utf8))
        let line = IntakeLine.line(stream: "weather", members: members)
        #expect(line == Array("{\"stream\":\"weather\",\"data\":{\"t\":1.0}}\n".utf8))
        let read = try IntakeLine(Array(line.dropLast()))
        #expect(read.members == members)
        #expect(throws: IntakeError.self) {
            try IntakeLine.members(of: Array(#"{"t":1},"timestamp":"2000-01-01T00:00:00Z""#.utf8))
        }
    }

    @Test func refusal_isALineOfJSON() {
        let answer = IntakeError("a \"b\" \\ c").answer
        #expect(answer == Array(#"{"error": "a \"b\" \\ c"}"#.utf8))
    }

    @Test func rate_letsASecondsWorthComeAtOnce() {
        var now = BootInstant(nanoseconds: 5_000_000_000)
        for (perSecond, burst) in [(100.0, 100), (2, 10), (0.1, 10)] {
            var rate = RecordRate(perSecond: perSecond, now: now)
            func taken(of tries: Int) -> Int {
                (0..<tries).count { _ in rate.delay(at: now) == nil }
            }
            #expect(taken(of: burst + 5) == burst)
            now = now + .milliseconds(Int64(1001 / perSecond))
            #expect(taken(of: 5) == 1)
            now = now + .seconds(1_000_000)
            #expect(taken(of: burst + 5) == burst)
        }
    }

    @Test func lines_areReassembled_andLongOnesReportedOnce() {
        let text = Array("ab\n\n0123456789\ncd\n01234567890123456789\nef".utf8)
        let whole = ["ab", "", "TOO LONG", "cd", "TOO LONG", "ef"]
        for size in 1...text.count {
            var buffer = LineBuffer()
            var lines: [String] = []
            func take() {
                while let line = buffer.next(limit: 5) {
                    switch line {
                    case .whole(let bytes): lines.append(String(decoding: bytes, as: UTF8.self))
                    case .tooLong: lines.append("TOO LONG")
                    }
                }
            }
            for start in stride(from: 0, to: text.count, by: size) {
                buffer.append(text[start..<min(text.count, start + size)])
                take()
            }
            #expect(!buffer.isUnread)
            buffer.end()
            #expect(buffer.isUnread)
            take()
            #expect(lines == whole, "pieces of \(size)")
            #expect(!buffer.isUnread)
        }
    }
}
