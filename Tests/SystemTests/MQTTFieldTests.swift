// MQTT messages in the field: brokers that err, streams that are too fast, outages, own messages.
import Foundation
import Support
import Testing

extension MQTTSystemTests {
    /// A broker that leaves RETAIN on live messages: only the first of a topic can be an old one.
    @Test func liveMessagesWithRetain_areStored() throws {
        let bench = try Bench()
        let stub = try Stub("hex:" + Tree.path("Tests/Fixtures/mqtt/live-retained.hex"))
        try bench.configure(
            port: stub.port,
            endpoint: bench.startReceiver(),
            streams: "[stream.tele]\nmqtt = [\"tele/+/SENSOR\"]"
        )
        try bench.start()
        try bench.await("messages", 2)
        #expect(try bench.count("retained") == 1)
        #expect(try bench.uploaded().compactMap { $0["n"] as? Int } == [1, 2])
    }

    /// In a resumed session, the content of a message that the broker did not know acknowledged.
    @Test func messageSentAgain_withoutDUP_isReported() throws {
        let bench = try Bench()
        let stub = try Stub("hex:" + Tree.path("Tests/Fixtures/mqtt/resent-without-dup.hex"))
        try bench.configure(
            port: stub.port,
            streams: "[stream.tele]\nmqtt = [\"tele/+/SENSOR\"]"
        )
        try bench.start()
        try bench.await("messages", 2)
        #expect(try bench.count("possibly_twice") == 1)
        let screen = try bench.run("status").output
        #expect(screen.contains("possibly twice"), "\(screen)")
    }

    /// A stream beyond its `max_rate` delays no other, at a broker that leaves 20 messages
    /// unacknowledged and keeps 1000.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func fastStream_costsNoOther() throws {
        let bench = try Bench()
        let broker = try Mosquitto(more: "max_queued_messages 1000")
        defer { broker.kill() }
        try bench.configure(
            port: "\(broker.port)",
            endpoint: bench.startReceiver(),
            streams: "[stream.tele]\nmqtt = [\"t/+\"]\n[stream.fast]\nmqtt = [\"f\"]\nmax_rate = 2"
        )
        try bench.start()
        try waitUntil("a connection") { try bench.messagesIn()["state"] as? String == "connected" }
        let numbers = (0..<10).map { #"{"n":\#($0)}"# }
        for round in 0..<5 {
            try broker.publish("f", (0..<400).map { "\($0)" })
            try broker.publish("t/\(round)", numbers)
            let published = Date.now
            try waitUntil("the other stream's") {
                try bench.stream("tele")["pending"] as? Int == 10 * (round + 1)
            }
            #expect(Date.now.timeIntervalSince(published) < 10)
        }
        let figures = try bench.messagesIn()
        #expect(figures["refused"] as? Int ?? 0 > 1500)
        #expect((figures["excesses"] as? [String: String])?.keys.first == "fast")
        let screen = try bench.run("status").output
        #expect(screen.contains("mqtt in: stream fast has got more"), "\(screen)")
        #expect(try bench.uploaded().count == 50)
    }

    /// More than `max_rate` for the time of an outage: all of it is stored, and says that it waited.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func messagesThatWaited_sayIt() throws {
        let (bench, broker) = (try Bench(), try Mosquitto())
        defer { broker.kill() }
        let stream = "max_rate = 1\nmqtt_time = \"Time\"\nmqtt = [\"tele/+/SENSOR\", \"t/+\"]"
        try bench.configure(
            port: "\(broker.port)",
            endpoint: bench.startReceiver(),
            streams: "[stream.tele]\n" + stream
        )
        try bench.start()
        try waitUntil("a connection") { try bench.messagesIn()["state"] as? String == "connected" }
        #expect(try bench.stop() == 0)
        let backlog = try String(
            contentsOfFile: Tree.path("Tests/Fixtures/mqtt/backlog.jsonl"),
            encoding: .utf8
        )
        let first = try #require(backlog.split(separator: "\n").first)
        let own = first.drop { $0 != "{" }.replacing("@T-1200", with: "2026-11-27T07:00:00Z")
        try broker.publish("tele/a/SENSOR", [String(own)])
        try broker.publish("t/a", (2..<500).map { #"{"n":\#($0)}"# })
        try bench.start()
        try bench.await("messages", 499)
        try broker.publish("t/a", [#"{"n":500}"#])
        try bench.await("messages", 500)
        let records = try bench.uploaded()
        func waited(_ record: [String: Any]) -> Bool { record["waited"] as? Bool == true }
        #expect(Set(records.filter(waited).compactMap { $0["n"] as? Int }) == Set(1..<500))
        let dated = try #require(records.first { $0["n"] as? Int == 1 })
        #expect("\(dated["timestamp"] ?? "")".hasPrefix("2026-11-27T07:00:00"))
        #expect(records.contains { $0["n"] as? Int == 500 && $0["waited"] == nil })
    }

    /// The gateway's own messages come back to a filter that matches them, too.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func ownMessages_areNotStored() throws {
        let (bench, broker) = (try Bench(), try Mosquitto())
        defer { broker.kill() }
        let table = "[stream.tele]\nmqtt = [\"#\"]"
        try bench.configure(port: "\(broker.port)", streams: table)
        let text = try String(contentsOfFile: bench.config, encoding: .utf8)
        try bench.write(text.replacing("publish = false", with: ""), "waypost.toml")
        try bench.start()
        try waitUntil("its own") { try bench.count("own") >= 2 }
        let own = try bench.count("own")
        try broker.publish("home/gw/BTtoMQTT/A4C138000001", [#"{"tempc":21.5}"#])
        try broker.publish("home/other/BTtoMQTT/A4C138000001", [#"{"tempc":21.5}"#])
        try bench.await("messages", 1)
        #expect(try bench.count("own") > own)
    }

    @Test func filterOfOwnMessages_isReported() throws {
        let bench = try Bench()
        let text = try String(
            contentsOfFile: Tree.path("Tests/Fixtures/mqtt/own-topic.toml"),
            encoding: .utf8
        )
        try bench.write(text, "waypost.toml")
        let check = try bench.run("config", "check")
        #expect(
            check.error.contains(
                "stream.theengs.mqtt: \"home/+/BTtoMQTT/+\" is also for messages that this gateway"
            ),
            "\(check)"
        )
        try bench.write(text.replacing("home/+", with: "home/omg"), "waypost.toml")
        #expect(try !bench.run("config", "check").error.contains("stream.theengs.mqtt"))
    }
}
