// MQTT messages in the field: brokers that err, streams that are too fast, outages, own messages.
import Foundation
import Support
import Testing

extension MQTTSystemTests {
    /// A broker that leaves RETAIN on live messages: only the first of a topic can be an old one.
    @Test func liveMessagesWithRetain_areStored() throws {
        let fixture = try Fixture()
        let stub = try Stub("hex:" + Tree.path("Tests/Fixtures/mqtt/live-retained.hex"))
        try fixture.configure(
            port: stub.port,
            endpoint: fixture.startReceiver(),
            streams: "[stream.tele]\nmqtt = [\"tele/+/SENSOR\"]"
        )
        try fixture.start()
        try fixture.await("messages", 2)
        #expect(try fixture.count("retained") == 1)
        #expect(try fixture.uploaded().compactMap { $0["n"] as? Int } == [1, 2])
    }

    /// In a resumed session, the content of a message that the broker did not know acknowledged.
    @Test func messageSentAgain_withoutDUP_isReported() throws {
        let fixture = try Fixture()
        let stub = try Stub("hex:" + Tree.path("Tests/Fixtures/mqtt/resent-without-dup.hex"))
        try fixture.configure(
            port: stub.port,
            streams: "[stream.tele]\nmqtt = [\"tele/+/SENSOR\"]"
        )
        try fixture.start()
        try fixture.await("messages", 2)
        #expect(try fixture.count("possibly_twice") == 1)
        let screen = try fixture.run("status").output
        #expect(screen.contains("possibly twice"), "\(screen)")
    }

    /// A stream beyond its `max_rate` delays no other, at a broker that leaves 20 messages
    /// unacknowledged and keeps 1000.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func fastStream_costsNoOther() throws {
        let fixture = try Fixture()
        let broker = try Mosquitto(more: "max_queued_messages 1000")
        defer { broker.kill() }
        try fixture.configure(
            port: "\(broker.port)",
            endpoint: fixture.startReceiver(),
            streams: "[stream.tele]\nmqtt = [\"t/+\"]\n[stream.fast]\nmqtt = [\"f\"]\nmax_rate = 2"
        )
        try fixture.start()
        try waitUntil("a connection") {
            try fixture.messagesIn()["state"] as? String == "connected"
        }
        let numbers = (0..<10).map { #"{"n":\#($0)}"# }
        for round in 0..<5 {
            try broker.publish("f", (0..<400).map { "\($0)" })
            try broker.publish("t/\(round)", numbers)
            let published = Date.now
            try waitUntil("the other stream's") {
                try fixture.stream("tele")["pending"] as? Int == 10 * (round + 1)
            }
            #expect(Date.now.timeIntervalSince(published) < 10)
        }
        let figures = try fixture.messagesIn()
        #expect(figures["refused"] as? Int ?? 0 > 1500)
        #expect((figures["excesses"] as? [String: String])?.keys.first == "fast")
        let screen = try fixture.run("status").output
        #expect(screen.contains("mqtt in: stream fast has got more"), "\(screen)")
        #expect(try fixture.uploaded().count == 50)
    }

    /// More than `max_rate` for the time of an outage: all of it is stored, and says that it waited.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func messagesThatWaited_sayIt() throws {
        let (fixture, broker) = (try Fixture(), try Mosquitto())
        defer { broker.kill() }
        let stream = "max_rate = 1\nmqtt_time = \"Time\"\nmqtt = [\"tele/+/SENSOR\", \"t/+\"]"
        try fixture.configure(
            port: "\(broker.port)",
            endpoint: fixture.startReceiver(),
            streams: "[stream.tele]\n" + stream
        )
        try fixture.start()
        try waitUntil("a connection") {
            try fixture.messagesIn()["state"] as? String == "connected"
        }
        #expect(try fixture.stop() == 0)
        let backlog = try String(
            contentsOfFile: Tree.path("Tests/Fixtures/mqtt/backlog.jsonl"),
            encoding: .utf8
        )
        let first = try #require(backlog.split(separator: "\n").first)
        let own = first.drop { $0 != "{" }.replacing("@T-1200", with: "2026-11-27T07:00:00Z")
        try broker.publish("tele/a/SENSOR", [String(own)])
        try broker.publish("t/a", (2..<500).map { #"{"n":\#($0)}"# })
        try fixture.start()
        try fixture.await("messages", 499)
        try broker.publish("t/a", [#"{"n":500}"#])
        try fixture.await("messages", 500)
        let records = try fixture.uploaded()
        func waited(_ record: [String: Any]) -> Bool { record["waited"] as? Bool == true }
        #expect(Set(records.filter(waited).compactMap { $0["n"] as? Int }) == Set(1..<500))
        let dated = try #require(records.first { $0["n"] as? Int == 1 })
        #expect("\(dated["timestamp"] ?? "")".hasPrefix("2026-11-27T07:00:00"))
        #expect(records.contains { $0["n"] as? Int == 500 && $0["waited"] == nil })
    }

    /// The gateway's own messages come back to a filter that matches them, too.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func ownMessages_areNotStored() throws {
        let (fixture, broker) = (try Fixture(), try Mosquitto())
        defer { broker.kill() }
        let table = "[stream.tele]\nmqtt = [\"#\"]"
        try fixture.configure(port: "\(broker.port)", streams: table)
        let text = try String(contentsOfFile: fixture.config, encoding: .utf8)
        try fixture.write(text.replacing("publish = false", with: ""), "waypost.toml")
        try fixture.start()
        try waitUntil("its own") { try fixture.count("own") >= 2 }
        let own = try fixture.count("own")
        try broker.publish("home/gw/BTtoMQTT/A4C138000001", [#"{"tempc":21.5}"#])
        try broker.publish("home/other/BTtoMQTT/A4C138000001", [#"{"tempc":21.5}"#])
        try fixture.await("messages", 1)
        #expect(try fixture.count("own") > own)
    }

    @Test func filterOfOwnMessages_isReported() throws {
        let fixture = try Fixture()
        let text = try String(
            contentsOfFile: Tree.path("Tests/Fixtures/mqtt/own-topic.toml"),
            encoding: .utf8
        )
        try fixture.write(text, "waypost.toml")
        let check = try fixture.run("config", "check")
        #expect(
            check.error.contains(
                "stream.theengs.mqtt: \"home/+/BTtoMQTT/+\" is also for messages that this gateway"
            ),
            "\(check)"
        )
        try fixture.write(text.replacing("home/+", with: "home/omg"), "waypost.toml")
        #expect(try !fixture.run("config", "check").error.contains("stream.theengs.mqtt"))
    }
}
