// The session at the broker as it is stored, to recognise messages that are sent again.
import Host
import MQTT
import Queue

/// The filters of a persistent session, and its messages that the broker may send again.
///
/// A message stays here from its receipt until the broker has confirmed the acknowledgement. Its
/// packet id and digest are stored in the transaction that stores its record, so that they are
/// known after a kill between the commit and the acknowledgement.
struct MessageSession: Sendable, Equatable {
    /// How far a message has come.
    private enum Stage {
        case received
        case acknowledged
        /// Acknowledged before the ping that is under way was sent.
        case pinged
    }

    private struct Entry: Equatable {
        var digest: UInt64
        var stage = Stage.received
        /// The connections that have ended since it was last received.
        var connections = 0
    }

    /// A broker sends a message again in the next connection, or never; this many are awaited.
    private static let connectionLimit = 8

    static let memo = "mqtt session"

    /// Broker and client id; a session of another one is unknown.
    let name: String
    /// The filters that the broker may have subscribed.
    var filters: [String] = []
    private var entries: [UInt16: Entry] = [:]

    init(name: String) { self.name = name }

    var isEmpty: Bool { filters.isEmpty && entries.isEmpty }

    /// The number of messages that the broker may send again.
    var count: Int { entries.count }

    // MARK: As text

    /// Parses a stored text; nil if it is of another session.
    init?(_ text: String?, name: String) {
        guard let lines = text?.split(separator: "\n", omittingEmptySubsequences: false),
            lines.count >= 2, lines[0] == name
        else { return nil }
        self.init(name: name)
        for part in lines[1].split(separator: " ") {
            let words = part.split(separator: ":")
            guard words.count == 3, let id = UInt16(words[0]),
                let digest = UInt64(words[1], radix: 36), let connections = Int(words[2])
            else { continue }
            entries[id] = Entry(digest: digest, connections: connections)
        }
        filters = lines.dropFirst(2).map(String.init)
    }

    var text: String {
        let ids = entries.sorted { $0.key < $1.key }
            .map { "\($0.key):\(String($0.value.digest, radix: 36)):\($0.value.connections)" }
        return ([name, ids.joined(separator: " ")] + filters).joined(separator: "\n")
    }

    // MARK: Messages

    /// Returns whether a message is one that was received before.
    ///
    /// That is the same content under the same id, sent again (DUP) in the same session. Without
    /// DUP the id is in use again, for another message.
    mutating func recognises(_ message: MQTTMessage) -> Bool {
        guard message.isDuplicate, entries[message.id]?.digest == Self.digest(message) else {
            return false
        }
        entries[message.id]?.connections = 0
        return true
    }

    /// Adds a message of QoS 1 whose record is stored together with this session.
    mutating func receive(_ message: MQTTMessage) {
        entries[message.id] = Entry(digest: Self.digest(message))
    }

    /// Forgets a message whose record was not stored.
    mutating func forget(_ id: UInt16) { entries[id] = nil }

    mutating func acknowledged(_ ids: [UInt16]) {
        for id in ids { entries[id]?.stage = .acknowledged }
    }

    /// Records that a ping was sent after all acknowledgements so far.
    ///
    /// Returns false if it would confirm nothing.
    mutating func pinged() -> Bool {
        var isUseful = false
        for (id, entry) in entries where entry.stage == .acknowledged {
            entries[id]?.stage = .pinged
            isUseful = true
        }
        return isUseful
    }

    /// Forgets the messages that an answered ping confirms; returns false if there are none.
    mutating func answered() -> Bool {
        let before = entries.count
        entries = entries.filter { $0.value.stage != .pinged }
        return entries.count < before
    }

    /// Records that the connection has ended: what was not confirmed by then may come again.
    ///
    /// `wasHeard`: the broker sent something in it. In any other, nothing could come again.
    mutating func disconnected(wasHeard: Bool) {
        for id in entries.keys {
            entries[id]?.stage = .received
            if wasHeard { entries[id]?.connections += 1 }
        }
        entries = entries.filter { $0.value.connections < Self.connectionLimit }
    }

    /// A digest of topic and payload (FNV-1a, 64 bits).
    private static func digest(_ message: MQTTMessage) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        message.topic.utf8.forEach(add)
        add(0)
        message.payload.forEach(add)
        return hash
    }
}
