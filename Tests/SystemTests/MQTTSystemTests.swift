// MQTT messages become records on the real programs: each once, acknowledged after the commit.
import Foundation
import Glibc
import Support
import Testing

@Suite struct MQTTSystemTests {
    /// A gateway that subscribes at a broker on `port`.
    final class Fixture: Device {
        func configure(
            port: String,
            endpoint: String = "http://127.0.0.1:1/api/ingest",
            mqtt: String = "",
            streams: String = "[stream.tele]\nmqtt = [\"t/+\"]\nmax_rate = 100000"
        ) throws {
            try write("demo-token", "token", mode: 0o600)
            try configure(
                """
                device_id = "gw"
                [upload]
                required = false
                endpoint = "\(endpoint)"
                token_file = "\(folder)/token"
                interval = "1h"
                [mqtt]
                url = "mqtt://127.0.0.1:\(port)"
                publish = false
                \(mqtt)
                \(streams)
                """
            )
        }

        /// `mqtt_in` of the status.
        func messagesIn() throws -> [String: Any] {
            try status()["mqtt_in"] as? [String: Any] ?? [:]
        }

        func count(_ name: String) throws -> Int { try messagesIn()[name] as? Int ?? 0 }

        func await(_ name: String, _ count: Int) throws {
            try waitUntil("\(count) \(name)") { try self.count(name) >= count }
            #expect(try self.count(name) == count)
        }

        /// Starts, and is killed and started again once the first message is on disk.
        func restartAfterFirstMessage() throws {
            try start()
            try self.await("messages", 1)
            try waitUntil("its commit") { try stream("tele")["pending"] as? Int == 1 }
            killDaemon()
            try start()
        }

        /// Uploads everything; returns the records that arrived.
        func uploaded(_ wire: String = "tele") throws -> [[String: Any]] {
            #expect(try run("sync").status == 0)
            return try arrived(wire).compactMap {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
        }
    }

    /// A broker of Tests/Peers.
    final class Stub {
        private let folder = TemporaryFolder()
        private let process: Process
        private var log: String { folder.path + "/log" }
        private(set) var port = ""

        init(_ scenario: String, database: String? = nil) throws {
            process = try .started(
                "/usr/bin/python3",
                [Tree.path("Tests/Peers/mqtt_broker.py"), scenario, folder.path + "/log"]
                    + (database.map { [$0] } ?? [])
            )
            try waitUntil("its port") {
                port = lines.first ?? ""
                return !port.isEmpty
            }
        }

        deinit { process.killAndWait() }

        var lines: [String] {
            let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").map(String.init)
        }

        func lines(_ word: String) -> [String] { lines.filter { $0.hasPrefix(word + " ") } }
    }

    // MARK: A broker that misbehaves

    /// When a PUBACK arrives, another process can read the record in the database.
    @Test func puback_comesAfterTheCommit_inOrder() throws {
        let fixture = try Fixture()
        let stub = try Stub("order", database: fixture.folder + "/state/queue.sqlite")
        try fixture.configure(port: stub.port)
        try fixture.start()
        try waitUntil("five acknowledgements") { stub.lines("puback").count >= 5 }
        let numbers = stub.lines("puback").map { $0.split(separator: " ").compactMap { Int($0) } }
        #expect(numbers.map(\.[0]) == [1, 2, 3, 4, 5])
        for pair in numbers { #expect(pair[1] >= pair[0], "\(pair)") }
        #expect(stub.lines.contains("connect gw-in persistent"))
    }

    /// The acknowledgements of two messages never reach the broker, and the gateway is killed.
    @Test func messageSentAgain_isStoredOnce_alsoAfterAKill() throws {
        let fixture = try Fixture()
        let stub = try Stub("again", database: fixture.folder + "/state/queue.sqlite")
        try fixture.configure(port: stub.port, endpoint: fixture.startReceiver())
        try fixture.start()
        try waitUntil("two acknowledgements") { stub.lines("puback").count >= 2 }
        fixture.killDaemon()
        try fixture.start()
        try waitUntil("six more") { stub.lines("puback").count >= 8 }
        #expect(try fixture.count("redelivered") == 2)
        #expect(try fixture.count("retained") == 1)
        let records = try fixture.uploaded()
        #expect(records.compactMap { $0["n"] as? Int }.sorted() == [7, 7, 9, 10])
        #expect(records.compactMap { $0["text"] as? String } == ["eight"])
        // Each connection subscribes.
        #expect(stub.lines("subscribe").count == 2)
        let ids = stub.lines("puback").dropFirst(2).compactMap {
            $0.split(separator: " ").dropFirst().first
        }
        #expect(ids == ["7", "8", "9", "7", "8", "11"])
    }

    /// More than the gateway holds: the rest waits in the socket, and nothing is lost.
    @Test func burst_isStoredWhole() throws {
        let fixture = try Fixture()
        let stub = try Stub("burst:20000")
        try fixture.configure(
            port: stub.port,
            streams: "[stream.tele]\nmqtt = [\"t/+\"]\nmax_rate = 100000"
        )
        try fixture.start()
        try fixture.await("messages", 20_000)
        #expect(try fixture.stream("tele")["pending"] as? Int == 20_000)
    }

    @Test func lostSession_isReported() throws {
        let fixture = try Fixture()
        let stub = try Stub("lost")
        try fixture.configure(port: stub.port)
        try fixture.restartAfterFirstMessage()
        try fixture.await("messages", 1)
        let errors = try fixture.status()["recent_errors"] as? [[String: Any]] ?? []
        let messages = errors.compactMap { $0["message"] as? String }
        #expect(
            messages.contains { $0.contains("has lost the session of this gateway") },
            "\(messages)"
        )
    }

    /// The broker has made a new session for a connection whose answer was lost.
    @Test func sessionMadeWithoutAnAnswer_isSubscribed() throws {
        let fixture = try Fixture()
        let stub = try Stub("silent")
        try fixture.configure(port: stub.port)
        try fixture.restartAfterFirstMessage()
        try waitUntil("the second message") { try fixture.stream("tele")["pending"] as? Int == 2 }
        #expect(stub.lines("connect").count == 3)
    }

    /// A refused filter is shown, and the others work.
    @Test func refusedFilter_isShown() throws {
        let fixture = try Fixture()
        let stub = try Stub("refuse")
        try fixture.configure(
            port: stub.port,
            streams: "[stream.tele]\nmqtt = [\"secret/#\", \"t/+\"]"
        )
        try fixture.start()
        try fixture.await("messages", 1)
        let figures = try fixture.messagesIn()
        #expect(figures["state"] as? String == "connected")
        let reason = figures["reason"] as? String ?? ""
        #expect(reason.contains("refuses the subscription to secret/#; check its access list"))
        #expect(
            try fixture.run("status").output.contains(
                "mqtt in: mqtt://127.0.0.1:\(stub.port) refuses"
            )
        )
    }

    // MARK: mosquitto

    /// Every kind of payload, and what becomes of it.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func payloads_becomeRecords() throws {
        let (fixture, broker) = (try Fixture(), try Mosquitto())
        defer { broker.kill() }
        try fixture.configure(
            port: "\(broker.port)",
            endpoint: fixture.startReceiver(),
            streams: """
                [stream.tele]
                mqtt = ["t/+"]
                max_record_bytes = 200
                """
        )
        try broker.publish("t/old", ["old"], ["-r"])
        try fixture.start()
        try fixture.await("retained", 1)
        try broker.publish(
            "t/a",
            [
                #"{"temp": 21.50, "id": 7, "timestamp": "2026-11-02T03:04:05Z"}"#,
                #"{"topic": "own"}"#, "21.50", "true", "ON", #"{"nan": NaN}"#, "[1]",
                String(repeating: "x", count: 300),
            ]
        )
        try fixture.await("messages", 7)
        try fixture.await("refused", 1)
        let records = try fixture.uploaded()
        #expect(records.count == 7)
        func has(_ name: String, _ value: String) -> Bool {
            records.contains { "\($0[name] ?? "")" == value && $0["topic"] as? String == "t/a" }
        }
        #expect(has("temp", "21.5"))
        #expect(has("mqtt_id", "7"))
        #expect(records.contains { "\($0["timestamp"] ?? "")".hasPrefix("2026-11-02T03:04:05") })
        #expect(has("value", "21.5"))
        #expect(has("value", "1"))
        for text in ["ON", #"{"nan": NaN}"#, "[1]"] { #expect(has("text", text)) }
        #expect(
            records.contains {
                $0["topic"] as? String == "own" && $0["mqtt_topic"] as? String == "t/a"
            }
        )
        let screen = try fixture.run("status").output
        #expect(screen.contains("mqtt in   connected mqtt://127.0.0.1:\(broker.port), 7 messages"))
    }

    /// kill -9 in the middle of messages, and restarts of the broker: each message once.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func killsAndRestarts_loseAndDoubleNothing()
        throws
    {
        let (fixture, broker) = (try Fixture(), try Mosquitto())
        defer { broker.kill() }
        try fixture.configure(port: "\(broker.port)", endpoint: fixture.startReceiver())
        try fixture.start()
        try waitUntil("a connection") {
            try fixture.messagesIn()["state"] as? String == "connected"
        }
        for round in 0..<6 {
            // Before the publisher, whose messages may all be stored at once.
            let before = try fixture.stream("tele")["pending"] as? Int ?? 0
            let publisher = try Process.started(
                Tree.tool("mosquitto_pub"),
                ["-h", "127.0.0.1", "-p", "\(broker.port)", "-t", "t/a", "-q", "1", "-l"],
                input: lines(round * 500..<round * 500 + 500)
            )
            fixture.children.append(publisher)
            if round % 2 == 0 {
                try waitUntil("some") {
                    try fixture.stream("tele")["pending"] as? Int ?? 0 > before
                }
                fixture.killDaemon()
                publisher.waitUntilExit()
                try fixture.start()
            } else {
                publisher.waitUntilExit()
                broker.stop()
                try broker.start()
            }
            #expect(publisher.terminationStatus == 0)
        }
        try waitUntil("all", limit: .seconds(120)) {
            try fixture.stream("tele")["pending"] as? Int ?? 0 >= 3000
        }
        let numbers = try fixture.uploaded().compactMap { $0["n"] as? Int }
        #expect(numbers.sorted() == Array(0..<3000))
    }

    private func lines(_ range: Range<Int>) throws -> Pipe {
        let pipe = Pipe()
        let text = range.map { "{\"n\":\($0)}\n" }.joined()
        // Less than a pipe holds.
        try pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try pipe.fileHandleForWriting.close()
        return pipe
    }

    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func wrongPassword_andAccess_areShown() throws {
        let fixture = try Fixture()
        let broker = try Mosquitto(password: "right")
        defer { broker.kill() }
        try fixture.write("wrong\n", "password", mode: 0o600)
        let keys = "username = \"user\"\npassword_file = \"\(fixture.folder)/password\""
        try fixture.configure(port: "\(broker.port)", mqtt: keys)
        try fixture.start()
        try waitUntil("its error") { try fixture.messagesIn()["state"] as? String == "error" }
        let reason = try fixture.messagesIn()["reason"] as? String ?? ""
        #expect(reason.contains("check mqtt.username, mqtt.password_file"), "\(reason)")
        #expect(try fixture.run("status").output.contains("mqtt in: mqtt://127.0.0.1"))
        try fixture.write("right\n", "password", mode: 0o600)
        try waitUntil("a connection") {
            try fixture.messagesIn()["state"] as? String == "connected"
        }
    }

    /// Other filters after a reload: the session is told, and goes on.
    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func reload_changesTheFilters() throws {
        let (fixture, broker) = (try Fixture(), try Mosquitto())
        defer { broker.kill() }
        try fixture.configure(port: "\(broker.port)")
        try fixture.start()
        try waitUntil("a connection") {
            try fixture.messagesIn()["state"] as? String == "connected"
        }
        try broker.publish("t/a", ["1"])
        try fixture.await("messages", 1)
        try fixture.configure(
            port: "\(broker.port)",
            streams: "[stream.tele]\nmqtt = [\"u/#\"]\n[stream.more]\nmqtt = [\"v\"]"
        )
        fixture.signal(SIGHUP)
        try waitUntil("messages of the new filters") {
            try broker.publish("u", ["2"])
            return try fixture.count("messages") > 1
        }
        let before = try fixture.count("messages")
        try broker.publish("t/a", ["3"])
        try broker.publish("v", ["4"])
        try fixture.await("messages", before + 1)
        #expect(try fixture.count("refused") == 0)
        try fixture.configure(port: "\(broker.port)", streams: "[stream.tele]")
        fixture.signal(SIGHUP)
        try waitUntil("no subscriber") { try fixture.status()["mqtt_in"] == nil }
    }

    /// Without topic filters there is no thread for them.
    @Test func withoutFilters_thereIsNoThread() throws {
        let fixture = try Fixture()
        try fixture.configure(port: "1", streams: "[stream.tele]")
        try fixture.start()
        #expect(try !threads(fixture).contains("mqtt-in"))
        try fixture.configure(port: "1")
        fixture.signal(SIGHUP)
        try waitUntil("the thread") { try threads(fixture).contains("mqtt-in") }
        #expect(try fixture.stop() == 0)
    }

    private func threads(_ fixture: Fixture) throws -> [String] {
        let folder = "/proc/\(fixture.daemon?.processIdentifier ?? 0)/task"
        return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
            (try? String(contentsOfFile: "\(folder)/\($0)/comm", encoding: .utf8))?
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}
