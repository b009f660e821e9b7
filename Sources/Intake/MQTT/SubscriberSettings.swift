// What a subscriber takes from the configuration.
import MQTT
import Records
import Setup

/// The settings of a subscriber; one with other settings needs another subscriber.
struct SubscriberSettings: Sendable, Equatable {
    var broker: BrokerSettings
    /// The streams with topic filters.
    var streams: [UserStream]
    var clientID: String

    /// Returns nil if there is nothing to subscribe to.
    init?(_ configuration: Configuration, deviceID: String) {
        streams = configuration.userStreams.filter { !$0.topics.isEmpty }
        broker = configuration.mqtt
        guard broker.endpoint != nil, !streams.isEmpty else { return nil }
        clientID = "\(broker.clientID ?? deviceID)-in"
    }
}
