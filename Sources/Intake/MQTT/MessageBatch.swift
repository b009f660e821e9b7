// The messages that are stored and acknowledged together.
import Host
import MQTT
import Queue
import Records
import Setup

/// Messages in the order of their receipt: the records to store, and the ids to acknowledge then.
struct MessageBatch: Sendable {
    /// The most messages in a batch.
    static let limit = 1024
    /// The most bytes of records in a batch.
    static let byteLimit = 1 << 20

    private(set) var records: [UserRecord] = []
    /// Packet ids of QoS 1, in the order of receipt (MQTT 3.1.1, section 4.6).
    private(set) var ids: [UInt16] = []
    /// Those of them whose records are in the batch.
    private(set) var recordIDs: [UInt16] = []
    private(set) var bytes = 0

    var isEmpty: Bool { records.isEmpty && ids.isEmpty }

    /// Adds a message, with its record if it has one.
    mutating func add(_ message: MQTTMessage, _ record: UserRecord? = nil) {
        if message.qos > 0 {
            ids.append(message.id)
            if record != nil { recordIDs.append(message.id) }
        }
        if let record {
            records.append(record)
            bytes += record.members.count
        }
    }
}

/// Finds the stream of a message and makes its record, within the limits of the stream.
struct MessageStreams: Sendable {
    private struct Subscribed {
        var stream: UserStream
        var filters: [TopicFilter]
        var rate: RecordRate
    }

    private var streams: [Subscribed]

    init(_ streams: [UserStream], now: BootInstant) {
        self.streams = streams.map {
            Subscribed(
                stream: $0,
                filters: $0.topics.compactMap { TopicFilter($0) },
                rate: RecordRate(perSecond: $0.maxRate, now: now)
            )
        }
    }

    /// All topic filters.
    var filters: [String] { streams.flatMap { $0.filters.map(\.text) } }

    /// The most bytes of a payload that can become a record.
    var payloadLimit: Int { streams.map(\.stream.maxRecordBytes).max() ?? 0 }

    /// Returns the record of a message, or throws the reason why it can never be stored.
    ///
    /// A refusal with `retryAfter` is for now: the stream's `max_rate` is used up.
    mutating func record(
        of message: MQTTMessage,
        _ clock: any HostClock
    ) throws(IntakeRefusal) -> UserRecord {
        let place = streams.firstIndex { $0.filters.contains { $0.matches(message.topic) } }
        guard let place else { throw IntakeRefusal("no stream has a filter for its topic") }
        let stream = streams[place].stream
        let most =
            "stream \(stream.name) takes \(stream.maxRecordBytes) "
            + "(stream.\(stream.name).max_record_bytes)"
        guard message.skipped == 0 else {
            throw IntakeRefusal("too long: \(message.skipped) bytes, \(most)")
        }
        let content = try MessageMembers(message)
        let size = content.members.count + 2
        guard size <= stream.maxRecordBytes else {
            throw IntakeRefusal("too long: \(size) bytes with its topic, \(most)")
        }
        let stamp = clock.stamp()
        try streams[place].rate.check(content.given, of: stream.name, at: stamp.boot)
        if let delay = streams[place].rate.delay(at: stamp.boot) {
            throw IntakeRefusal("too fast for stream \(stream.name)", retryAfter: delay)
        }
        return UserRecord(
            stream: stream.name,
            stamp: stamp,
            given: content.given,
            members: content.members
        )
    }
}
