// Finds out which messages had waited at the broker, and which are old values that it had kept.
import Host
import MQTT

/// Whether the broker still has messages that waited for this client; of one connection.
///
/// A broker leaves a limited number of messages of QoS 1 unacknowledged (mosquitto:
/// `max_inflight_messages`). If it had fewer under way when it answered a ping, no other waited.
struct BrokerBacklog {
    private(set) var isOpen: Bool
    /// Messages of QoS 1 that are not acknowledged.
    private var unacknowledged = 0
    /// The most that were under way at once, so the broker's limit is not below it.
    private var maximum = 0
    /// Acknowledgements that the broker may not have seen when it answers the ping under way.
    private var unseen = 0
    private var isPingDue: Bool

    /// A ping could show that nothing waits any more.
    var needsPing: Bool { isOpen && isPingDue }

    init(isResumed: Bool) { (isOpen, isPingDue) = (isResumed, isResumed) }

    mutating func received() {
        unacknowledged += 1
        maximum = max(maximum, unacknowledged)
    }

    mutating func acknowledged(_ count: Int) {
        unacknowledged -= count
        unseen += count
        isPingDue = true
    }

    mutating func pinged() { (unseen, isPingDue) = (0, false) }

    /// The broker has answered all pings.
    mutating func answered() {
        let underWay = unacknowledged + unseen
        if underWay == 0 || underWay < maximum { isOpen = false }
        maximum = max(maximum, underWay)
    }
}

/// Tells old values that the broker had kept (RETAIN) from live messages with that flag.
///
/// The flag alone does not say it: some brokers leave it on live messages, against MQTT 3.1.1,
/// 3.3.1-9. A kept message comes once for a topic, next to SUBACK.
struct RetainedMessages {
    /// Hashes of the topics whose kept message has come.
    private var topics: Set<Int> = []
    /// Until when more may come; nil before SUBACK.
    private var end: BootInstant?
    /// The broker leaves the flag on live messages, so what waited before SUBACK is not old.
    private var leavesFlag = false

    /// The longest pause between two of them, or between them and SUBACK, also on a bad link.
    private static let pause = Duration.seconds(30)
    private static let topicLimit = 16_384

    /// A subscription was sent.
    mutating func subscribing() { (topics, end) = ([], nil) }

    /// SUBACK has come.
    mutating func subscribed(at now: BootInstant) { end = now + Self.pause }

    /// Returns whether a message is an old value.
    mutating func isOld(_ message: MQTTMessage, at now: BootInstant) -> Bool {
        guard message.isRetained else { return false }
        if let end, now >= end { leavesFlag = true }
        guard end.map({ now < $0 }) ?? !leavesFlag, topics.count < Self.topicLimit,
            topics.insert(message.topic.hashValue).inserted
        else { return false }
        if end != nil { end = now + Self.pause }
        return true
    }
}
