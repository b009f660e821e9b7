// The keys of `[mqtt]` that say what is published live, and under which topics.
package import Configuration
import Host
package import MQTT
import Records

/// The part of `[mqtt]` that says what is published; the broker's part is `BrokerSettings`.
package struct LiveSettings: Configurable {
    /// The placeholder for the device's id in `topic`.
    static let deviceID = "<device_id>"

    package var publishes = true
    package var topic = "home/\(deviceID)"
    /// The shortest time between two messages of one beacon, and between two positions.
    package var interval = Duration.seconds(10)
    package var homeAssistant = true
    package var discoveryPrefix = "homeassistant"

    package init() {}

    package static var keys: [Key<Self>] {
        Key("publish", \.publishes, .boolean)
            .says("Publish live what is collected; false for a broker that is only listened to.")
        Key("topic", \.topic, .topic(placeholder: deviceID))
            .says("Start of every topic that is published; \(deviceID) stands for the device's id.")
        Key("interval", \.interval, .duration(.seconds(1) ... .seconds(3600)))
            .remote().says(
                "Shortest time between two messages of a beacon, except events and flags, or two "
                    + "positions."
            )
        Key("home_assistant", \.homeAssistant, .boolean)
            .says("Announce the gateway and its beacons to Home Assistant 2024.11 or newer.")
        Key("discovery_prefix", \.discoveryPrefix, .topic(placeholder: nil))
            .says("The prefix that Home Assistant's MQTT integration has for discovery.")
    }

    /// Returns the start of every topic of a device.
    package func topic(of device: String) -> String {
        topic.replacing(text: Self.deviceID, with: device)
    }

    /// Returns the topics to which a device with these user streams publishes, if it publishes.
    package func published(by device: String, streams: [String]) -> PublishedTopics {
        guard publishes else { return PublishedTopics() }
        let format = LiveFormat(topic: topic(of: device)) { ($0.wall, .synced) }
        let identifier = LiveDevice(id: device, version: "").identifier
        let described = HomeAssistantDevice.topic(identifier, prefix: discoveryPrefix)
            .dropLast("/config".count)
        return PublishedTopics(
            [format.presence, format.location, format.health] + streams.map(format.stream),
            // The descriptions are those of the gateway, and of each beacon.
            starts: ["\(format.topic)/BTtoMQTT/"]
                + (homeAssistant ? ["\(described)/", "\(described)_"] : [])
        )
    }
}

extension ValueFormat where Value == String {
    /// A topic name (MQTT 3.1.1, section 4.7) that others can be put behind.
    fileprivate static func topic(placeholder: String?) -> Self {
        let hint = placeholder.map { "; may hold \($0)" } ?? ""
        return .text(
            "1 to 200 bytes, no + # or blank, no / at an end, no $ first\(hint)",
            parse: { text in
                let isSafe = text.unicodeScalars.allSatisfy {
                    $0.value > 32 && !(127...159).contains($0.value) && $0 != "+" && $0 != "#"
                }
                let fits = (1...200).contains(text.utf8.count) && !text.hasPrefix("$")
                let levels = text.split(separator: "/", omittingEmptySubsequences: false)
                guard isSafe, fits, levels.allSatisfy({ !$0.isEmpty }) else {
                    return .failure(MismatchError("\"\(printable(text))\" is not such a topic"))
                }
                return .success(text)
            },
            written: { $0 }
        )
    }
}
