import Foundation
import Configuration
import Host
import MQTT
import Records
import StatusBoard
import Support
import Testing

@testable import Live

/// The output against a real broker.
@Suite(.enabled(if: Tree.hasTool("mosquitto"), "mosquitto is not here: deploy/test unpacks it"))
struct LiveOutputTests {
    @Test func overTLSWithAPassword_publishesAndLeavesOffline() throws {
        let broker = try Mosquitto(password: "secret", isEncrypted: true)
        defer { broker.kill() }
        let (folder, clock) = (TemporaryFolder(), SystemClock())
        try write("secret\n", folder.path + "/password")
        let output = try run(
            "mqtts://localhost:\(broker.port)",
            user: "user",
            passwordFile: folder.path + "/password",
            caFile: broker.caFile
        )
        try waitUntil("a connection") { output.output.report.state == .connected }
        output.output.tap.accept(sighting(at: clock.stamp()))
        try waitUntil("a message") { output.output.report.published == 1 }
        #expect(output.output.report.peer == "mqtts://localhost:\(broker.port)")
        #expect(output.output.report.lastError == nil)
        #expect(output.stop())
    }

    @Test func wrongPassword_isReportedWithTheRemedy() throws {
        let broker = try Mosquitto(password: "secret")
        defer { broker.kill() }
        let folder = TemporaryFolder()
        try write("wrong\n", folder.path + "/password")
        let output = try run(
            "mqtt://127.0.0.1:\(broker.port)",
            user: "user",
            passwordFile: folder.path + "/password"
        )
        try waitUntil("a refusal") { output.output.report.lastError != nil }
        let failure = try #require(output.output.report.lastError?.failure)
        #expect(failure.message.contains("mqtt.password_file"), "\(failure)")
        #expect(output.output.report.state == .connecting)
        try waitUntil("three refusals") { output.attempts.value >= 3 }
        // One line in the log, however often it tries.
        #expect(output.changes.value == [failure])
        try write("secret\n", folder.path + "/password")
        try waitUntil("a connection") { output.changes.value == [failure, nil] }
        #expect(output.stop())
    }

    /// Without a queue mosquitto ends the connection, as others do; with one it says nothing.
    @Test(arguments: ["max_queued_messages 0", "max_queued_messages 1000"])
    func accessList_thatRefusesTheTopic_isReported(_ line: String) throws {
        let broker = try Mosquitto(access: "topic read #\n", more: line)
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)")
        try waitUntil("what the broker does not pass on") {
            output.output.report.lastError?.failure.message.contains("home/site-1/#") == true
        }
        #expect(output.stop())
    }

    @Test func brokerRestart_isFollowedByPresenceAndDescriptions() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)")
        let first = try MQTTListener(broker)
        for _ in 0..<3 { output.output.tap.accept(sighting(at: SystemClock().stamp())) }
        let config = "homeassistant/device/waypost_site-1_C60011220001/config"
        try first.wait(for: "\(config) {")
        // Killed: it stores nothing of what it was to keep.
        broker.kill()
        try waitUntil("the loss") { output.output.report.state == .connecting }
        try broker.start()
        let second = try MQTTListener(broker)
        try second.wait(for: "home/site-1/LWT online")
        try second.wait(for: "\(config) {")
        #expect(output.stop())
        try second.wait(for: "home/site-1/LWT offline")
    }

    /// Home Assistant would show it closed until the next advertisement.
    @Test func windowOpenedOffline_isPublishedOnReconnect() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)", interval: .seconds(1))
        func hear(_ isOpen: Int64, before age: Duration) {
            var sighting = sighting(at: SystemClock().stamp().advanced(by: .zero - age))
            sighting.telemetry.add(.isWindowOpen, scaled: isOpen)
            output.output.tap.accept(sighting)
        }
        try waitUntil("a connection") { output.output.report.state == .connected }
        hear(0, before: .seconds(60))
        try waitUntil("a message") { output.output.report.published == 1 }
        broker.kill()
        try waitUntil("the loss") { output.output.report.state == .connecting }
        hear(1, before: .seconds(30))
        try broker.start()
        try waitUntil("its last values") { output.output.report.published == 2 }
        #expect(output.stop())
    }

    @Test func homeAssistantsStart_bringsTheDescriptionsAgain() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)")
        let listener = try MQTTListener(broker)
        try listener.wait(for: "home/site-1/LWT online")
        let gateway = "homeassistant/device/waypost_site-1/config {"
        try listener.wait(for: gateway)
        try broker.publish("homeassistant/status", ["online"])
        try listener.wait(for: gateway, times: 2)
        #expect(output.stop())
    }

    /// The will of an earlier connection may come after the next one has said `online`.
    @Test func offlineOfAnEarlierConnection_isPutRight() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)")
        let listener = try MQTTListener(broker)
        try listener.wait(for: "home/site-1/LWT online")
        try broker.publish("home/site-1/LWT", ["offline"], ["-r"])
        try listener.wait(for: "home/site-1/LWT online", times: 2)
        #expect(output.stop())
    }

    /// Anybody who may publish there could end the live output.
    @Test func floodOfMessages_isReported_andCostsNoConnection() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)")
        try waitUntil("a connection") { output.output.report.state == .connected }
        let first = output.output.report.since
        let listener = try MQTTListener(broker)
        try listener.wait(for: "home/site-1/LWT online")
        try broker.publish("homeassistant/status", (0..<500).map { "message \($0)" })
        try waitUntil("the reason") {
            output.output.report.lastError?.failure.message.contains("homeassistant/status") == true
        }
        output.output.tap.accept(sighting(at: SystemClock().stamp()))
        try listener.wait(for: "home/site-1/BTtoMQTT/C60011220001 {")
        #expect(output.output.report.since == first)
        #expect(output.stop())
    }

    @Test func moreBeaconsThanAreFollowed_areReported() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let output = try run("mqtt://127.0.0.1:\(broker.port)")
        try waitUntil("a connection") { output.output.report.state == .connected }
        for number in 0..<2 * (LiveValues.beaconLimit + 1) {
            var sighting = ruuvi(number / 2, at: 0)
            sighting.stamp = SystemClock().stamp()
            output.output.tap.accept(sighting)
        }
        let message = try #require(output.output.report.lastError?.failure.message)
        #expect(message.contains("more than 512 beacons") && message.contains("beacons.allow"))
        #expect(output.stop())
    }

    /// A broker that reads nothing costs its messages only: what waits is bounded, and a stop works.
    @Test func stalledBroker_boundsWhatWaits_andDelaysNoStop() throws {
        let broker = try Mosquitto()
        defer { broker.kill() }
        let (output, clock) = (try run("mqtt://127.0.0.1:\(broker.port)"), SystemClock())
        try waitUntil("a connection") { output.output.report.state == .connected }
        broker.signal(SIGSTOP)
        defer { broker.signal(SIGCONT) }
        let members = Array("\"x\":\"\(String(repeating: "a", count: 10_000))\"".utf8)
        // More than any socket takes.
        for _ in 0..<4000 {
            let record = UserRecord(stream: "weather", stamp: clock.stamp(), members: members)
            output.output.tap.accept([record])
        }
        try waitUntil("dropped records") { output.output.report.dropped > 0 }
        #expect(output.stop())
    }

    // MARK: Helpers

    private func write(_ text: String, _ path: String) throws {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        chmod(path, 0o600)
    }

    private func sighting(at stamp: Stamp) -> Sighting {
        var sighting = ruuvi(1, temperature: 2150, at: 0)
        sighting.stamp = stamp
        return sighting
    }

    private func run(
        _ url: String,
        user: String? = nil,
        passwordFile: String? = nil,
        caFile: String? = nil,
        interval: Duration = .seconds(10)
    ) throws -> RunningOutput {
        var settings = LiveSettings()
        settings.interval = interval
        let broker = BrokerSettings {
            $0.url = url
            ($0.username, $0.passwordFile, $0.caFile) = (user, passwordFile, caFile)
        }
        let (changes, attempts) = (StateBox([Failure?]()), StateBox(0))
        let output = try LiveOutput(
            settings,
            broker,
            at: #require(broker.endpoint),
            environment: [:],
            device: LiveDevice(id: "site-1", version: "1.0"),
            clock: SystemClock(),
            date: { ($0.wall, .synced) },
            rest: { stop, limit in
                attempts.update { $0 += 1 }
                _ = stop.sleep(for: min(limit, .milliseconds(100)))
            },
            onChange: { change in changes.update { $0.append(change) } }
        )
        return try RunningOutput(output, changes, attempts)
    }
}

/// An output on its thread; stopped at its end.
private final class RunningOutput {
    let output: LiveOutput
    /// The log lines it would write: failures, and nil for a connection after one.
    let changes: StateBox<[Failure?]>
    let attempts: StateBox<Int>
    private let thread: StoppableThread

    init(_ output: LiveOutput, _ changes: StateBox<[Failure?]>, _ attempts: StateBox<Int>) throws {
        (self.output, self.changes, self.attempts) = (output, changes, attempts)
        thread = try StoppableThread("mqtt") { output.run(until: $0) }
    }

    deinit { _ = stop() }

    /// Returns false if it does not stop in the time that a part of the gateway has.
    func stop() -> Bool {
        thread.stop(by: SystemClock().now() + StoppableThread.stopLimit * patience)
    }
}
