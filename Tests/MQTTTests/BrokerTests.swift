// Connections to brokers: mosquitto, and one that misbehaves.
import Foundation
import HTTP
import Host
import Support
import Testing

@testable import MQTT

@Suite struct BrokerTests {
    /// A broker of Tests/Peers that answers CONNECT with some bytes.
    private final class Stub {
        let folder = TemporaryFolder()
        let process: Process
        private(set) var port = ""

        init(_ scenario: String) throws {
            let log = folder.path + "/log"
            process = try .started(
                "/usr/bin/python3",
                [Tree.path("Tests/Peers/mqtt_broker.py"), scenario, log]
            )
            try waitUntil("its port") {
                port =
                    (try? String(contentsOfFile: log, encoding: .utf8))?
                    .split(separator: "\n").first.map(String.init) ?? ""
                return !port.isEmpty
            }
        }

        deinit { process.killAndWait() }
    }

    private func connect(
        _ url: String,
        caFile: String? = nil,
        keepAlive: UInt16 = 60,
        username: String? = nil,
        password: String? = nil,
        patience: Duration = .seconds(15)
    ) throws -> MQTTConnection {
        try MQTTConnection.connect(
            to: try Endpoint.parse(url, .mqtt).get(),
            caFile: caFile,
            MQTTConnect(
                clientID: "test",
                isClean: true,
                keepAliveSeconds: keepAlive,
                username: username,
                password: password.map { Array($0.utf8) }
            ),
            patience: patience,
            until: try StopSignal()
        )
    }

    private func failure(_ body: () throws -> Void) -> String {
        do {
            try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    /// Answers of a broker, and the error for each.
    private static let hostile: [[String]] = [
        ["20020005", "not authorised; check mqtt.username"],
        ["20020004", "wrong user name or password; check mqtt.username"],
        ["20020002", "refuses the client id; check mqtt.client_id"],
        ["20020001", "it does not speak MQTT 3.1.1"],
        ["20020009", "unknown code 9"],
        ["485454502f312e3120343030", "does not speak MQTT 3.1.1: it sends"],
        ["d000", "its first packet is not CONNACK"],
        ["20ffffffffff", "a packet whose length has more than four bytes"],
        ["20ffffff7f", "a packet that begins with 0x20 and has 268435455 bytes"],
    ]

    @Test(arguments: hostile) func answerToConnect_isExplained(pair: [String]) throws {
        let stub = try Stub("raw:\(pair[0])")
        let why = failure { _ = try connect("mqtt://127.0.0.1:\(stub.port)") }
        #expect(why.contains(pair[1]) && why.contains("mqtt://127.0.0.1:\(stub.port)"), "\(why)")
    }

    /// After CONNACK: what the broker sends then, and the error.
    private static let broken: [[String]] = [
        ["9003000101", "a subscription that was not made"],
        ["b0020001", "a request that was not made"],
        ["20020000", "CONNACK twice"],
        ["34050001610001", "a message with the flags 0x4"],
        ["8206000100016101", "a packet that begins with 0x82"],
    ]

    @Test(arguments: broken) func brokenPacket_endsTheConnection(pair: [String]) throws {
        let stub = try Stub("raw:20020000\(pair[0])")
        var connection = try connect("mqtt://127.0.0.1:\(stub.port)")
        let why = failure { while true { _ = try connection.receive() } }
        #expect(why.contains(pair[1]), "\(why)")
    }

    /// A PINGRESP that nobody asked for, and PUBACK for nothing, are ignored.
    @Test func uselessPackets_areIgnored() throws {
        let stub = try Stub("raw:20020000d00040020001" + "3004000161" + "62")
        var connection = try connect("mqtt://127.0.0.1:\(stub.port)")
        let event = try connection.receive()
        #expect(event == .message(MQTTMessage(topic: "a", payload: Array("b".utf8))))
    }

    /// A half-open link: nothing comes back, and no packet says so.
    @Test func silentBroker_isNoticed() throws {
        let stub = try Stub("raw:20020000")
        var connection = try connect(
            "mqtt://127.0.0.1:\(stub.port)",
            keepAlive: 1,
            patience: .seconds(1)
        )
        #expect(failure { _ = try connection.receive() }.contains("no answer for 1"))
        let mute = try Stub("raw:")
        let why = failure {
            _ = try connect("mqtt://127.0.0.1:\(mute.port)", patience: .milliseconds(300))
        }
        #expect(why.contains("no answer for"))
    }

    @Test func stop_endsAConnect() throws {
        let stub = try Stub("raw:")
        let stop = try StopSignal()
        let thread = try OwnThread("stop") {
            usleep(100_000)
            stop.raise()
        }
        let started = SystemClock().now()
        let why = failure {
            _ = try MQTTConnection.connect(
                to: try Endpoint.parse("mqtt://127.0.0.1:\(stub.port)", .mqtt).get(),
                caFile: nil,
                MQTTConnect(clientID: "a", isClean: true),
                until: stop
            )
        }
        thread.join()
        #expect(why.contains("stopped"))
        #expect(SystemClock().now() - started < .seconds(10) * patience)
    }

    @Test func nobodyThere_isExplained() throws {
        let why = failure { _ = try connect("mqtt://127.0.0.1:\(freePort())") }
        #expect(why.hasPrefix("E001 mqtt://127.0.0.1:"))
        #expect(why.contains("check that the server runs, and the host and port in mqtt.url"))
    }

    // MARK: mosquitto

    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func messages_makeTheRound() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        var connection = try connect("mqtt://127.0.0.1:\(broker.port)")
        try connection.subscribe(["t/+"])
        #expect(try connection.receive() == .subscribed(refused: []))
        let id = try connection.publish("t/a", [1, 2, 3], qos: 1)
        var events = [
            try #require(try connection.receive()), try #require(try connection.receive()),
        ]
        if case .published = events[0] { events.swapAt(0, 1) }
        let expected = MQTTMessage(topic: "t/a", payload: [1, 2, 3], qos: 1, id: 1)
        #expect(events == [.message(expected), .published(id: id)])
        try connection.acknowledge([1])
        try connection.ping()
        #expect(try connection.receive() == .answeredPing)
        try connection.unsubscribe(["t/+"])
        #expect(try connection.receive() == .unsubscribed)
        connection.disconnect()
    }

    @Test(.enabled(if: Tree.hasTool("mosquitto"))) func wrongPassword_isExplained() throws {
        let broker = try Mosquitto(password: "right")
        defer { broker.kill() }
        let url = "mqtt://127.0.0.1:\(broker.port)"
        #expect(failure { _ = try connect(url, username: "user", password: "right") } == "")
        for (name, password) in [("user", "wrong"), ("other", "right"), (nil, nil)] {
            let why = failure { _ = try connect(url, username: name, password: password) }
            #expect(why.contains("check mqtt.username"), "\(why)")
        }
    }

    @Test(.enabled(if: Tree.hasTool("mosquitto") && Tree.hasTool("openssl")))
    func tls_isVerified() throws {
        let broker = try Mosquitto(isEncrypted: true)
        defer { broker.kill() }
        let other = try Mosquitto(isEncrypted: true)
        defer { other.kill() }
        let url = "mqtts://localhost:\(broker.port)"
        var connection = try connect(url, caFile: broker.caFile)
        try connection.subscribe(["big"])
        // More than the socket and TLS hold, in both directions.
        let payload = (0..<250_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for _ in 0..<8 { try connection.publish("big", payload, qos: 1) }
        var (messages, acknowledged) = (0, 0)
        while messages < 8 || acknowledged < 8 {
            switch try connection.receive() {
            case .message(let message):
                #expect(message.payload == payload)
                messages += 1
            case .published: acknowledged += 1
            default: break
            }
        }
        connection.disconnect()
        for file in [other.caFile, nil] {
            let why = failure { _ = try connect(url, caFile: file) }
            #expect(why.contains("the server's certificate and mqtt.ca_file"), "\(why)")
        }
        let wrongName = failure {
            _ = try connect("mqtts://127.0.0.2:\(broker.port)", caFile: broker.caFile)
        }
        #expect(!wrongName.isEmpty)
        let plain = try Mosquitto()
        defer { plain.kill() }
        let why = failure { _ = try connect("mqtts://localhost:\(plain.port)") }
        #expect(!why.isEmpty)
    }
}
