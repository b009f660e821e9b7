// The part of the configuration that a subscriber needs.
import HTTP
import MQTT
import Records
import Setup

/// The settings of a subscriber; one with other settings needs another subscriber.
struct SubscriberSettings: Sendable, Equatable {
    var broker: BrokerSettings
    var endpoint: Endpoint
    /// The streams with topic filters.
    var streams: [UserStream]
    var clientID: String
    /// Topics of this gateway's own messages, which are never stored.
    var published: PublishedTopics

    /// Returns nil if there is nothing to subscribe to.
    init?(_ configuration: Configuration, deviceID: String) {
        streams = configuration.userStreams.filter { !$0.topics.isEmpty }
        broker = configuration.mqtt
        published = configuration.publishedTopics(of: deviceID)
        guard let endpoint = broker.endpoint, !streams.isEmpty else { return nil }
        self.endpoint = endpoint
        clientID = "\(broker.clientID ?? deviceID)-in"
    }
}
