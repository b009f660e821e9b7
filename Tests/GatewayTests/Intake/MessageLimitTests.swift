// Limits of streams, what waits at the broker, and retained messages.
import Host
import MQTT
import Records
import Setup
import Testing

@testable import Intake

@Suite struct BrokerBacklogTests {
    private func received(_ count: Int, _ backlog: inout BrokerBacklog) {
        for _ in 0..<count { backlog.received() }
    }

    @Test func newSession_hasNoBacklog() {
        let backlog = BrokerBacklog(isResumed: false)
        #expect(!backlog.isOpen && !backlog.needsPing)
    }

    @Test func nothingWaits_ifAPingIsAnsweredBeforeAnyMessage() {
        var backlog = BrokerBacklog(isResumed: true)
        #expect(backlog.isOpen && backlog.needsPing)
        backlog.pinged()
        #expect(!backlog.needsPing)
        backlog.answered()
        #expect(!backlog.isOpen)
    }

    /// A broker that sends 20 at a time has 50; each acknowledgement makes it send another.
    @Test func backlog_isOpen_untilTheBrokerHasFewerUnderWay() {
        var backlog = BrokerBacklog(isResumed: true)
        backlog.pinged()
        received(20, &backlog)
        backlog.answered()
        #expect(backlog.isOpen)
        backlog.acknowledged(20)
        backlog.pinged()
        received(20, &backlog)
        backlog.answered()
        #expect(backlog.isOpen)
        // Acknowledgements behind the ping are not seen when it is answered.
        backlog.pinged()
        backlog.acknowledged(10)
        backlog.answered()
        #expect(backlog.isOpen && backlog.needsPing)
        backlog.acknowledged(10)
        backlog.pinged()
        received(10, &backlog)
        backlog.answered()
        #expect(!backlog.isOpen)
    }

    /// One that sends everything at once sends the answer behind it.
    @Test func backlogWithoutALimit_isOpen_untilItsEnd() {
        var backlog = BrokerBacklog(isResumed: true)
        received(300, &backlog)
        backlog.acknowledged(300)
        backlog.pinged()
        received(700, &backlog)
        backlog.answered()
        #expect(backlog.isOpen)
        backlog.acknowledged(700)
        backlog.pinged()
        backlog.answered()
        #expect(!backlog.isOpen)
    }
}

@Suite struct RetainedMessageTests {
    private static let start = BootInstant(nanoseconds: 1)

    private func message(_ topic: String, isRetained: Bool = true) -> MQTTMessage {
        MQTTMessage(topic: topic, payload: [], isRetained: isRetained)
    }

    @Test func firstOfATopic_nextToItsSubscription_isOld() {
        var retained = RetainedMessages()
        func isOld(_ topic: String, after seconds: Int, isRetained: Bool = true) -> Bool {
            retained.isOld(
                message(topic, isRetained: isRetained),
                at: Self.start + .seconds(seconds)
            )
        }
        retained.subscribing()
        #expect(isOld("a", after: 0))
        #expect(!isOld("a", after: 0))
        retained.subscribed(at: Self.start + .seconds(10))
        #expect(isOld("b", after: 11))
        #expect(!isOld("c", after: 11, isRetained: false))
        // Many come one behind the other, also on a slow link.
        #expect(isOld("d", after: 12))
        #expect(!isOld("b", after: 12))
        // A link that hangs for a while.
        #expect(isOld("g", after: 40))
        retained.subscribing()
        #expect(isOld("a", after: 50))
        retained.subscribed(at: Self.start + .seconds(50))
        // This broker leaves the flag on live messages: what waited at it is not old either.
        #expect(!isOld("e", after: 80))
        #expect(!isOld("f", after: 80))
        retained.subscribing()
        #expect(!isOld("a", after: 90))
        retained.subscribed(at: Self.start + .seconds(91))
        #expect(isOld("a", after: 92))
    }

    @Test func memory_isBounded() {
        var retained = RetainedMessages()
        retained.subscribing()
        let old = (0..<100_000).count { retained.isOld(message("\($0)"), at: Self.start) }
        #expect(old == 16_384)
    }
}

@Suite struct MessageStreamTests {
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 0),
        wall: WallTime.release
    )

    private func streams(_ rate: Double, _ time: String = "timestamp") -> MessageStreams {
        var stream = UserStream(name: "b")
        (stream.topics, stream.maxRate, stream.timeMember) = (["b/#"], rate, time)
        return MessageStreams([stream], now: Self.start.boot)
    }

    private let message = MQTTMessage(topic: "b/1", payload: [], qos: 1)

    /// Ten seconds of a stream at once; then `max_rate`.
    @Test func burst_isStored_andAnExcessIsNamed() throws {
        var streams = streams(100)
        func taken(_ count: Int, after time: Duration, hasWaited: Bool = false) -> Int {
            let stamp = Self.start.advanced(by: time)
            return (0..<count).count { _ in
                (try? streams.record(of: message, at: stamp, hasWaited: hasWaited)) != nil
            }
        }
        func excesses(after time: Duration) -> [String: WallTime]? {
            streams.excesses(at: Self.start.boot + time)
        }
        #expect(taken(1000, after: .zero) == 1000)
        #expect(excesses(after: .zero) == nil)
        #expect(taken(2000, after: .milliseconds(10)) == 1)
        let since = Self.start.wall + .milliseconds(10)
        #expect(excesses(after: .milliseconds(10)) == ["b": since])
        // Messages that waited at the broker came over a longer time.
        #expect(taken(5000, after: .milliseconds(10), hasWaited: true) == 5000)
        #expect(taken(2000, after: .milliseconds(5010)) == 500)
        #expect(excesses(after: .seconds(15)) == ["b": since])
        #expect(excesses(after: .seconds(16)) == nil)
    }

    /// Not even a broker that says so for ever may send any number.
    @Test func backlog_hasALimit() {
        var streams = streams(0.5)
        let taken = (0..<200_000).count { _ in
            (try? streams.record(of: message, at: Self.start, hasWaited: true)) != nil
        }
        #expect(taken == 100_000 + 100)
    }

    @Test func record_hasTheTimeAtWhichItsMessageCame() throws {
        let payload = Array(#"{"ts":1795849200}"#.utf8)
        let message = MQTTMessage(topic: "b/1", payload: payload, qos: 1)
        var streams = streams(1, "ts")
        let record = try streams.record(of: message, at: Self.start, hasWaited: true)
        #expect(record.stamp == Self.start)
        #expect(record.given == WallTime(milliseconds: 1_795_849_200_000))
        #expect(
            String(decoding: record.members, as: UTF8.self)
                == #""topic":"b/1","waited":true,"ts":1795849200"#
        )
    }

    /// The server begins a file for each date, and a refused message would be lost.
    @Test func oneDateTooMany_isStoredWithTheTimeAtWhichItCame() throws {
        var streams = streams(200)
        func record(_ day: Int) throws -> UserRecord {
            let payload = Array(#"{"timestamp":\#(1_795_849_200 + day * 86_400)}"#.utf8)
            let message = MQTTMessage(topic: "b/1", payload: payload, qos: 1)
            return try streams.record(of: message, at: Self.start, hasWaited: false)
        }
        for day in 0..<RecordRate.datesPerDay { #expect(try record(day).given != nil) }
        let late = try record(RecordRate.datesPerDay)
        #expect(late.given == nil && late.stamp == Self.start)
        let members = String(decoding: late.members, as: UTF8.self)
        #expect(members == #""topic":"b/1","mqtt_timestamp":1882249200"#)
        #expect(try record(1).given != nil)
    }

    /// A message that fits is not refused for having waited.
    @Test func waited_costsNoRoom() throws {
        var stream = UserStream(name: "b")
        (stream.topics, stream.maxRecordBytes) = (["b"], 22)
        var streams = MessageStreams([stream], now: Self.start.boot)
        let message = MQTTMessage(topic: "b", payload: Array(#"{"a":"12"}"#.utf8), qos: 1)
        for hasWaited in [false, true] {
            _ = try streams.record(of: message, at: Self.start, hasWaited: hasWaited)
        }
        let longer = MQTTMessage(topic: "b", payload: Array(#"{"a":"123"}"#.utf8), qos: 1)
        #expect(throws: IntakeError.self) {
            try streams.record(of: longer, at: Self.start, hasWaited: false)
        }
    }
}
