import Host
import MQTT
import Testing

@testable import Intake

/// Which messages are recognised when the broker sends them again.
@Suite struct MessageSessionTests {
    private func message(_ id: UInt16, _ text: String, again: Bool = false) -> MQTTMessage {
        MQTTMessage(topic: "t", payload: Array(text.utf8), qos: 1, isDuplicate: again, id: id)
    }

    /// The memos as the queue has them.
    private final class Memos {
        var texts: [String: String] = [:]
        var written = 0

        func store(_ session: inout MessageSession) {
            let memos = session.takeMemos()
            written = memos.values.reduce(0) { $0 + $1.utf8.count }
            texts.merge(memos) { $1 }
        }

        func session(_ name: String) -> MessageSession? {
            var session = MessageSession(name: name)
            return session.restore({ texts[$0] }) ? session : nil
        }

        /// A comparison of its own, because a test would print all of both.
        func have(_ other: MessageSession) -> Bool { session(other.name) == other }
    }

    private func stored(_ session: MessageSession) throws -> MessageSession {
        let memos = Memos()
        var session = session
        memos.store(&session)
        return try #require(memos.session(session.name))
    }

    @Test func memos_makeTheRound() throws {
        var session = MessageSession(name: "mqtt://h:1 id-in")
        session.filters = ["a/+", "b c/#"]
        session.receive(message(1, "x"))
        session.receive(message(65_535, "y"))
        let again = try stored(session)
        #expect(again == session)
        let memos = Memos()
        #expect(memos.session("n") == nil)
        memos.store(&session)
        #expect(memos.session("mqtt://h:1 other-in") == nil)
        let empty = MessageSession(name: "n")
        #expect(try stored(empty) == empty)
    }

    /// A broker that answers no ping before the end of its backlog.
    @Test func memos_areThoseThatChanged() throws {
        var session = MessageSession(name: "n")
        let memos = Memos()
        for batch in 0..<60 {
            for id in 1...1000 { session.receive(message(UInt16(batch * 1000 + id), "x")) }
            memos.store(&session)
            #expect(memos.written < 100_000)
        }
        #expect(session.count == 60_000)
        #expect(memos.have(session))
        // What was not stored is in the next memos, and so is every change.
        session.receive(message(1, "y"))
        _ = session.takeMemos()
        session.notStored()
        memos.store(&session)
        #expect(memos.have(session))
        session.disconnected(wasHeard: true)
        memos.store(&session)
        #expect(memos.have(session))
        session.acknowledged(Array(1...30_000))
        _ = session.pinged()
        _ = session.answered()
        memos.store(&session)
        #expect(session.count == 30_000)
        #expect(memos.have(session))
        // Neither a reset session nor another one keeps messages for the next.
        let after = Memos()
        after.texts = memos.texts
        session.reset()
        after.store(&session)
        #expect(try #require(after.session("n")).isEmpty)
        var other = MessageSession(name: "other")
        #expect(!other.restore { memos.texts[$0] })
        memos.store(&other)
        #expect(memos.session("n") == nil)
        #expect(try #require(memos.session("other")).count == 0)
    }

    /// The broker chooses the packet ids, and what it sends again costs no write.
    @Test func memos_costLittle_whateverTheBrokerSends() throws {
        var session = MessageSession(name: "n")
        let memos = Memos()
        for id in UInt16(1)...65_535 { session.receive(message(id, "x")) }
        memos.store(&session)
        for id in stride(from: UInt16(1), to: 65_000, by: 1024) {
            let isRecognised = session.recognises(message(id, "x", again: true))
            #expect(isRecognised)
        }
        memos.store(&session)
        #expect(memos.written == 0)
        for id in stride(from: UInt16(1), to: 64_000, by: 1000) {
            session.receive(message(id, "y"))
        }
        memos.store(&session)
        #expect(memos.written < 64 * 2048)
        #expect(memos.have(session))
    }

    /// Some brokers send a message again without DUP or under another id.
    @Test func messageThatMayBeAnEarlierOne_isFound_once() throws {
        var session = MessageSession(name: "n")
        session.receive(message(7, "x"))
        func mayBe(_ id: UInt16, _ text: String) -> Bool {
            session.mayBeEarlier(message(id, text))
        }
        // In the same connection it is another message.
        #expect(!mayBe(7, "x"))
        session.disconnected(wasHeard: true)
        session.resumed()
        #expect(!mayBe(7, "y"))
        #expect(mayBe(9, "x"))
        #expect(!mayBe(7, "x"))
        session.resumed()
        // Recognised, so another one is not it.
        let isRecognised = session.recognises(message(7, "x", again: true))
        #expect(isRecognised)
        #expect(!mayBe(7, "x"))
        session.resumed()
        session.caughtUp()
        #expect(!mayBe(7, "x"))
    }

    private func recognises(_ session: MessageSession, _ message: MQTTMessage) -> Bool {
        var session = session
        return session.recognises(message)
    }

    /// kill -9 between the commit and PUBACK.
    @Test func storedMessage_isRecognised_onlyAsASecondDelivery() throws {
        var session = MessageSession(name: "n")
        session.receive(message(5, "x"))
        session = try stored(session)
        // Another message with the same id, content or both; then the same one.
        let others = [message(5, "y", again: true), message(6, "x", again: true), message(5, "x")]
        for other in others { #expect(!recognises(session, other)) }
        #expect(recognises(session, message(5, "x", again: true)))
    }

    /// Only an answered ping shows that the broker has an acknowledgement.
    @Test func confirmedMessage_isForgotten() throws {
        var session = MessageSession(name: "n")
        session.receive(message(1, "x"))
        session.acknowledged([1])
        let outcome1 = session.pinged()
        #expect(outcome1)
        session.receive(message(2, "x"))
        session.acknowledged([2])
        // The ping was sent before the second acknowledgement.
        let outcome2 = session.answered()
        #expect(outcome2)
        #expect(!recognises(session, message(1, "x", again: true)))
        #expect(recognises(session, message(2, "x", again: true)))
        let outcome3 = session.pinged()
        #expect(outcome3)
        let outcome4 = session.answered()
        #expect(outcome4)
        #expect(session.count == 0)
        let (pinged, answered) = (session.pinged(), session.answered())
        #expect(!pinged && !answered)
    }

    /// The link is cut before the ping is answered.
    @Test func unconfirmedMessage_isRecognised_afterReconnect() {
        var session = MessageSession(name: "n")
        session.receive(message(1, "x"))
        session.acknowledged([1])
        _ = session.pinged()
        // Connections in which nothing could come do not count.
        for _ in 0..<100 { session.disconnected(wasHeard: false) }
        let isConfirmed = session.answered()
        #expect(!isConfirmed)
        #expect(recognises(session, message(1, "x", again: true)))
    }

    /// A message that the broker has not sent again for many connections will not come.
    @Test func session_isBounded() {
        var session = MessageSession(name: "n")
        for round in 0..<1000 {
            for id in 1...20 { session.receive(message(UInt16(round * 20 + id), "x")) }
            session.disconnected(wasHeard: true)
        }
        #expect(session.count < 200)
    }
}

/// The record that a payload becomes.
@Suite struct MessageMembersTests {
    private static let payloads: [[String]] = [
        [#"{"a": 1.50}"#, #""topic":"t/a","a":1.50"#],
        ["{}", #""topic":"t/a""#],
        [#" {"a":{"b":[1, 2]}} "#, #""topic":"t/a","a":{"b":[1,2]}"#],
        [#"{"topic":"x"}"#, #""mqtt_topic":"t/a","topic":"x""#],
        [#"{"Topic":"x","mqtt_topic":1}"#, #""Topic":"x","mqtt_topic":1"#],
        [#"{"id":7,"Clock":"c"}"#, #""topic":"t/a","mqtt_id":7,"mqtt_clock":"c""#],
        [#"{"timestamp":123}"#, #""topic":"t/a","mqtt_timestamp":123"#],
        ["21.50", #""topic":"t/a","value":21.50"#],
        [" -3e2\n", #""topic":"t/a","value":-3e2"#],
        ["true", #""topic":"t/a","value":true"#],
        ["ON", #""topic":"t/a","text":"ON""#],
        ["", #""topic":"t/a","text":"""#],
        ["null", #""topic":"t/a","text":"null""#],
        ["[1]", #""topic":"t/a","text":"[1]""#],
        ["007", #""topic":"t/a","text":"007""#],
        ["1 2", #""topic":"t/a","text":"1 2""#],
        [#"{"a":NaN}"#, #""topic":"t/a","text":"{\"a\":NaN}""#],
        [#"{"a":1,"A":2}"#, #""topic":"t/a","text":"{\"a\":1,\"A\":2}""#],
        [#"{"id":1,"mqtt_id":2}"#, #""topic":"t/a","text":"{\"id\":1,\"mqtt_id\":2}""#],
        ["a\u{0}\n", #""topic":"t/a","text":"a\u0000\u000a""#],
        ["{\"t\":21.5}\u{0}", #""topic":"t/a","t":21.5"#],
        ["\u{FEFF}{\"t\":21.5}", #""topic":"t/a","t":21.5"#],
        ["21.50\u{0}\u{0}", #""topic":"t/a","value":21.50"#],
        ["ON\u{0}", #""topic":"t/a","text":"ON\u0000""#],
        ["\u{0}", #""topic":"t/a","text":"\u0000""#],
        [
            #"{"timestamp":"1970-01-01T00:00:12Z","n":1}"#,
            #""topic":"t/a","mqtt_timestamp":"1970-01-01T00:00:12Z","n":1"#,
        ],
        [
            #"{"timestamp":946684800000,"Time":"2026-11-28T09:00:00Z"}"#,
            #""topic":"t/a","mqtt_timestamp":946684800000,"Time":"2026-11-28T09:00:00Z""#,
        ],
    ]

    @Test(arguments: payloads) func payload_becomesMembers(pair: [String]) throws {
        let message = MQTTMessage(topic: "t/a", payload: Array(pair[0].utf8))
        let members = try MessageMembers(message)
        #expect(String(decoding: members.members, as: UTF8.self) == pair[1])
        #expect(members.given == nil)
        let object = Array("{".utf8) + members.members + Array("}".utf8)
        #expect(try IntakeLine.members(of: object) == members.members)
    }

    @Test(arguments: [#""2026-11-21T04:30:07.123Z""#, "1795235407.123", "1795235407123"])
    func timestamp_datesTheRecord(time: String) throws {
        let payload = #"{"timestamp":\#(time),"a":1}"#
        let members = try MessageMembers(MQTTMessage(topic: "t", payload: Array(payload.utf8)))
        #expect(String(decoding: members.members, as: UTF8.self) == #""topic":"t","a":1"#)
        #expect(members.given == WallTime(rfc3339: "2026-11-21T04:30:07.123Z"))
    }

    /// Of the member that the stream names, which stays, also in the form of a number.
    @Test(
        arguments: [
            [#"{"Time":"2026-11-28T08:00:00+01:00"}"#, "2026-11-28T07:00:00.000Z"],
            [#"{"time":1795849200}"#, "2026-11-28T07:00:00.000Z"],
            [#"{"TIME":1795849200.25}"#, "2026-11-28T07:00:00.250Z"],
            [#"{"Time":1795849200250}"#, "2026-11-28T07:00:00.250Z"],
            [
                #"{"Time":1795849200250,"timestamp":"2026-11-29T07:00:00Z"}"#,
                "2026-11-28T07:00:00.250Z",
            ],
            [#"{"Time":12}"#, ""], [#"{"Time":1e300}"#, ""], [#"{"Time":-5}"#, ""],
            [#"{"Time":"2000-01-01T00:00:00Z"}"#, ""], [#"{"Time":"1795849200"}"#, ""],
            [#"{"Time":null}"#, ""], [#"{"n":1}"#, ""], ["1795849200", ""],
        ] as [[String]]
    )
    func namedMember_datesTheRecord(pair: [String]) throws {
        let message = MQTTMessage(topic: "t", payload: Array(pair[0].utf8))
        let members = try MessageMembers(message, time: "Time")
        #expect(members.given?.rfc3339 ?? "" == pair[1])
        let text = String(decoding: members.members, as: UTF8.self)
        #expect(text.contains(pair[0].dropFirst().dropLast().prefix(10)))
    }

    @Test(
        arguments: [
            [#"{"a":1}"#, #""topic":"t","waited":true,"a":1"#],
            [#"{"waited":1}"#, #""topic":"t","mqtt_waited":true,"waited":1"#],
            [
                #"{"topic":1,"mqtt_topic":2,"Waited":3,"mqtt_waited":4}"#,
                #""topic":1,"mqtt_topic":2,"Waited":3,"mqtt_waited":4"#,
            ], ["ON", #""topic":"t","waited":true,"text":"ON""#],
        ]
    )
    func messageThatHasWaited_saysSo(pair: [String]) throws {
        let message = MQTTMessage(topic: "t", payload: Array(pair[0].utf8))
        let members = try MessageMembers(message, hasWaited: true).members
        #expect(String(decoding: members, as: UTF8.self) == pair[1])
    }

    /// As `waypost put` would refuse it, with the members that the gateway adds.
    @Test func objectBeyondTheLimits_isAText() throws {
        func members(_ payload: String) throws -> String {
            let message = MQTTMessage(topic: "t", payload: Array(payload.utf8))
            return String(decoding: try MessageMembers(message).members, as: UTF8.self)
        }
        func object(_ count: Int) -> String {
            "{" + (0..<count).map { "\"m\($0)\":1" }.joined(separator: ",") + "}"
        }
        #expect(try members(object(4092)).hasPrefix(#""topic":"t","m0":1,"m1""#))
        let sound = #"{"audio_data":"?","audio_format":"wav"}"#
        for payload in [object(4093), #"{"":1}"#, sound] {
            #expect(try members(payload).hasPrefix(#""topic":"t","text":"{"#))
        }
    }

    @Test func otherThanUTF8_isRefused() {
        let message = MQTTMessage(topic: "t", payload: [0xFF, 0xFE])
        #expect(throws: IntakeError("not UTF-8")) { try MessageMembers(message) }
    }
}
