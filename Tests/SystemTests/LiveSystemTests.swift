import Foundation
import Host
import Support
import Testing

/// The real program with a real broker.
@Suite(.enabled(if: Tree.hasTool("mosquitto"), "mosquitto is not here: deploy/test unpacks it"))
struct LiveSystemTests {
    /// Writes a capture in which each of `count` RuuviTags is heard once, with values of its own.
    private func capture(_ count: Int, to path: String) throws {
        var bytes = Array("btsnoop".utf8) + [0, 0, 0, 0, 1, 0, 0, 3, 0xEA]
        func big(_ value: Int, _ size: Int) -> [UInt8] {
            (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        for number in 0..<count {
            // Data format 5 (docs.ruuvi.com): temperature in 0.005 °C, humidity in 0.0025 %,
            // pressure in Pa above 50,000, battery in mV above 1600 and 2 dBm above -40.
            let address: [UInt8] = [0xC6, 0, 0x11, 0x22, 0x33, UInt8(number)]
            let power = (1300 + number) << 5 | 22
            let values =
                big(4000 + 2 * number, 2) + big(20_000 + 40 * number, 2)
                + big(51_325 + number, 2) + big(4, 2) + big(-4, 2) + big(1036, 2) + big(power, 2)
            let data =
                [0xFF, 0x99, 0x04, 0x05] + values + [66] + big(number, 2) + address
            let payload = [UInt8(data.count)] + data
            let event =
                [0x02, 1, 0, 1] + address.reversed() + [UInt8(payload.count)] + payload + [0xB5]
            let report = [0x04, 0x3E, UInt8(event.count)] + event
            bytes += big(report.count, 4) + big(report.count, 4) + big(3, 4) + big(0, 4) + big(0, 8)
            bytes += report
        }
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test func fiftyBeacons_arePublished_andOfflineAfterAKill() throws {
        let (broker, folder) = (try Mosquitto(), TemporaryFolder())
        try capture(50, to: folder.path + "/capture")
        let device = try Device(
            """
            device_id = "site-1"
            [mqtt]
            url = "mqtt://127.0.0.1:\(broker.port)"
            [beacons]
            source = "btsnoop:\(folder.path)/capture"
            replay_speed = 0
            # Each is heard once.
            allow = ["C6:00:11:22:33:*"]
            [stream.weather]
            """
        )
        try device.start()
        let listener = try MQTTListener(broker)
        let topics = (0..<50).map { String(format: "home/site-1/BTtoMQTT/C600112233%02X", $0) }
        let configs = (0..<50).map {
            String(format: "homeassistant/device/waypost_site-1_C600112233%02X/config", $0)
        }
        // Each is sent again once Home Assistant had time to subscribe.
        try waitUntil("50 beacons") {
            let seen = try listener.messages()
            return (topics + configs).allSatisfy { seen[$0] != nil }
        }
        let seen = try listener.messages()
        for (number, topic) in topics.enumerated() {
            let message = try object(seen[topic])
            #expect(message["tempc"] as? Double == Double(2000 + number) / 100, "\(topic)")
            #expect(message["hum"] as? Double == Double(500 + number) / 10, "\(topic)")
            #expect(message["pres"] as? Double == Double(101_325 + number) / 100, "\(topic)")
            #expect(message["volt"] as? Double == Double(2900 + number) / 1000, "\(topic)")
            #expect(message["rssi"] as? Int == -75, "\(topic)")
            let entities = try object(seen[configs[number]])["cmps"] as? [String: [String: Any]]
            let units = entities?.compactMapValues { $0["unit_of_meas"] as? String }
            #expect(
                units == [
                    "rssi": "dBm", "tempc": "°C", "hum": "%", "pres": "hPa", "volt": "V",
                    "tx": "dBm", "accx": "m/s²", "accy": "m/s²", "accz": "m/s²",
                ]
            )
            #expect(entities?["mov"] != nil && entities?["seq"] != nil)
        }
        _ = try device.run("put", "weather", input: #"{"temperature_c": 21.5}"#)
        try waitUntil("the record of a stream") {
            try object(listener.messages()["home/site-1/weather"])["temperature_c"] as? Double
                == 21.5
        }

        let outputs = try device.status()["outputs"] as? [String: [String: Any]]
        let output = try #require(outputs?["mqtt"])
        #expect(output["state"] as? String == "connected")
        #expect((output["sent"] as? Int ?? 0) >= 51)
        #expect(output["dropped"] as? Int == 0)
        let screen = try device.run("status").output
        #expect(screen.contains("mqtt      connected to mqtt://127.0.0.1:\(broker.port)"))

        device.killDaemon()
        try waitUntil("the will") {
            try listener.messages()["home/site-1/LWT"] == "offline"
        }
    }

    @Test func missingBroker_affectsNothingElse_andIsReported() throws {
        let folder = TemporaryFolder()
        try capture(5, to: folder.path + "/capture")
        let device = try Device(
            """
            [mqtt]
            url = "mqtt://127.0.0.1:\(freePort())"
            [beacons]
            source = "btsnoop:\(folder.path)/capture"
            replay_speed = 0
            """
        )
        try device.write("", "log")
        try device.launch(
            log: try #require(FileHandle(forWritingAtPath: device.folder + "/log"))
        )
        try waitUntil("5 records") { try device.source("beacons")["records"] as? Int == 5 }
        try waitUntil("an error") {
            let outputs = try device.status()["outputs"] as? [String: [String: Any]]
            let error = outputs?["mqtt"]?["last_error"] as? [String: Any]
            return (error?["message"] as? String)?.contains("mqtt.url") == true
        }
        // Once per outage, whole.
        let log = try String(contentsOfFile: device.folder + "/log", encoding: .utf8)
        let lines = log.split(separator: "\n").filter { $0.contains("mqtt, why: ") }
        #expect(lines.count == 1 && lines.allSatisfy { $0.contains("mqtt.url") }, "\(log)")
        // A broker that is away loses no record.
        let reasons = try device.status()["reasons"] as? [String] ?? []
        #expect(!reasons.contains { $0.contains("mqtt") })
        // A reload ends it.
        try device.configure("[beacons]\nenabled = false\n")
        device.signal(SIGHUP)
        try waitUntil("its end") {
            let status = try device.status()
            return !status.isEmpty && status["outputs"] == nil
        }
        #expect(try device.stop() == 0)
    }

    private func object(_ text: String?) throws -> [String: Any] {
        let object = try? JSONSerialization.jsonObject(with: Data((text ?? "").utf8))
        return object as? [String: Any] ?? [:]
    }
}
