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
        /// The limit for messages that waited at the broker; after an outage there are many.
        var backlogRate: RecordRate
    }

    /// `max_rate` is averaged over so many seconds, and an excess ends so long after a refusal.
    private static let average = 10.0

    private var streams: [Subscribed]
    /// The streams beyond their `max_rate`: since when messages are refused, and the last one.
    private var refusing: [String: (since: WallTime, last: BootInstant)] = [:]

    init(_ streams: [UserStream], now: BootInstant) {
        self.streams = streams.map {
            let (rate, average) = ($0.maxRate, Self.average)
            return Subscribed(
                stream: $0,
                filters: $0.topics.compactMap { TopicFilter($0) },
                rate: RecordRate(perSecond: rate, burst: max(100, rate * average), now: now),
                backlogRate: RecordRate(perSecond: rate, burst: max(1e5, rate * 3600), now: now)
            )
        }
    }

    /// All topic filters.
    var filters: [String] { streams.flatMap { $0.filters.map(\.text) } }

    /// The most bytes of a payload that can become a record.
    var payloadLimit: Int { streams.map(\.stream.maxRecordBytes).max() ?? 0 }

    /// Returns the record of a message that came at `stamp`, or throws the reason why it is not
    /// stored; `retryAfter` is set if its stream gets more than its `max_rate`.
    mutating func record(
        of message: MQTTMessage,
        at stamp: Stamp,
        hasWaited: Bool
    ) throws(IntakeError) -> UserRecord {
        let place = streams.firstIndex { $0.filters.contains { $0.matches(message.topic) } }
        guard let place else { throw IntakeError("no stream has a filter for its topic") }
        let stream = streams[place].stream
        let maximum =
            "stream \(stream.name) takes \(stream.maxRecordBytes) "
            + "(stream.\(stream.name).max_record_bytes)"
        guard message.skipped == 0 else {
            throw IntakeError("too long: \(message.skipped) bytes, \(maximum)")
        }
        // Before the payload is parsed, which costs more.
        try admit(place, at: stamp, hasWaited: hasWaited)
        var content = try MessageMembers(message, time: stream.timeMember, hasWaited: hasWaited)
        let size = content.members.count + 2
        // One that waited is not longer for that.
        guard size <= stream.maxRecordBytes + (hasWaited ? MessageMembers.waitedBytes : 0) else {
            throw IntakeError("too long: \(size) bytes with its topic, \(maximum)")
        }
        if (try? streams[place].rate.check(content.given, of: stream.name, at: stamp.boot)) == nil {
            // Its sender never hears of a refusal, and the broker would not send it again.
            content = try MessageMembers(message, time: nil, hasWaited: hasWaited)
        }
        return UserRecord(
            stream: stream.name,
            stamp: stamp,
            given: content.given,
            members: content.members
        )
    }

    /// Takes a message's place in the `max_rate` of its stream; throws if there is none.
    private mutating func admit(
        _ place: Int,
        at stamp: Stamp,
        hasWaited: Bool
    ) throws(IntakeError) {
        if hasWaited, streams[place].backlogRate.delay(at: stamp.boot) == nil { return }
        guard let delay = streams[place].rate.delay(at: stamp.boot) else { return }
        let name = streams[place].stream.name
        refusing[name] = (refusing[name]?.since ?? stamp.wall, stamp.boot)
        throw IntakeError("more than stream.\(name).max_rate", retryAfter: delay)
    }

    /// Returns since when streams have been beyond their `max_rate`; nil if none is.
    mutating func excesses(at now: BootInstant) -> [String: WallTime]? {
        refusing = refusing.filter { now - $0.value.last <= .seconds(Self.average) }
        return refusing.isEmpty ? nil : refusing.mapValues { $0.since }
    }
}
