// The session at the broker as it is stored, to recognise messages that are sent again.
import Host
import MQTT
import Queue

/// The filters of a persistent session, and its messages that the broker may send again.
///
/// A message stays here from its receipt until the broker has confirmed the acknowledgement. Its
/// packet id and digest are stored in the transaction that stores its record, so that they are
/// known after a kill between the commit and the acknowledgement.
///
/// It is stored as memos of `blockSize` packet ids each, of which a commit writes those that have
/// changed: a broker that sends a large backlog answers a ping after all of it, and until then
/// every message may come again. The broker chooses the ids, so a memo is small (2 kB).
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
        var connections: UInt8 = 0
    }

    private typealias Block = [UInt16: Entry]

    /// A broker sends a message again in the next connection, or never; this many are awaited.
    private static let connectionLimit = 8

    private static let blockSize = 64
    private static let blockCount = 1 << 16 / blockSize
    private static let memo = "mqtt filters"

    private static func memo(block: Int) -> String { "mqtt messages \(block)" }

    /// Broker and client id; a session of another one is unknown.
    let name: String
    /// The filters that the broker may have subscribed.
    var filters: [String] = []
    private var blocks = [Block](repeating: [:], count: Self.blockCount)
    /// Blocks that differ from what was taken to be stored, and the name and filters taken.
    private var changed: Set<Int> = []
    private var takenFilters: String?
    /// Digests of messages that the broker may send again, perhaps without DUP or under another id.
    private var earlier: [UInt64: Int] = [:]

    init(name: String) { self.name = name }

    static func == (one: Self, other: Self) -> Bool {
        (one.name, one.filters) == (other.name, other.filters) && one.blocks == other.blocks
    }

    var isEmpty: Bool { filters.isEmpty && count == 0 }

    /// The number of messages that the broker may send again.
    var count: Int { blocks.reduce(0) { $0 + $1.count } }

    // MARK: As memos

    /// Reads the stored memos; false if they are of another session, which the next ones replace.
    mutating func restore(_ stored: (String) -> String?) -> Bool {
        let lines = stored(Self.memo)?.split(separator: "\n", omittingEmptySubsequences: false)
        let isKnown = lines?.first.map { $0 == name } ?? false
        for index in blocks.indices {
            guard let text = stored(Self.memo(block: index)), !text.isEmpty else { continue }
            if isKnown { blocks[index] = Self.block(text) } else { changed.insert(index) }
        }
        if isKnown { filters = lines?.dropFirst().map(String.init) ?? [] }
        return isKnown
    }

    /// Forgets everything, because the broker has a new session.
    mutating func reset() {
        markChanged { !$0.isEmpty }
        blocks = [Block](repeating: [:], count: Self.blockCount)
        (filters, earlier) = ([], [:])
    }

    /// Returns the memos that have changed since the last call, by their names.
    mutating func takeMemos() -> [String: String] {
        var memos: [String: String] = [:]
        let text = ([name] + filters).joined(separator: "\n")
        if text != takenFilters { memos[Self.memo] = text }
        for index in changed { memos[Self.memo(block: index)] = Self.text(blocks[index]) }
        (changed, takenFilters) = ([], text)
        return memos
    }

    /// Records that what `takeMemos` returned was not stored.
    mutating func notStored() { (changed, takenFilters) = (Set(blocks.indices), nil) }

    private static func block(_ text: String) -> Block {
        var block = Block()
        for part in text.split(separator: " ") {
            let words = part.split(separator: ":")
            guard words.count == 3, let id = UInt16(words[0]),
                let digest = UInt64(words[1], radix: 36), let connections = UInt8(words[2])
            else { continue }
            block[id] = Entry(digest: digest, connections: connections)
        }
        return block
    }

    private static func text(_ block: Block) -> String {
        var text = ""
        for (id, entry) in block {
            text += "\(id):\(String(entry.digest, radix: 36)):\(entry.connections) "
        }
        return text
    }

    private mutating func markChanged(where isChanged: (Block) -> Bool) {
        for index in blocks.indices where isChanged(blocks[index]) { changed.insert(index) }
    }

    /// The entry of a message; setting it changes what is stored.
    private subscript(id: UInt16) -> Entry? {
        get { blocks[Int(id) / Self.blockSize][id] }
        set {
            blocks[Int(id) / Self.blockSize][id] = newValue
            changed.insert(Int(id) / Self.blockSize)
        }
    }

    // MARK: Messages

    /// Returns whether a message is one that was received before.
    ///
    /// That is the same content under the same id, sent again (DUP) in the same session. Without
    /// DUP the id is in use again, for another message.
    mutating func recognises(_ message: MQTTMessage) -> Bool {
        guard message.isDuplicate, self[message.id]?.digest == Self.digest(message) else {
            return false
        }
        // Stored with the next change: a broker must not cause writes with what is stored already.
        blocks[Int(message.id) / Self.blockSize][message.id]?.connections = 0
        _ = mayBeEarlier(message)
        return true
    }

    /// The broker has resumed the session: it may send again what it does not know acknowledged.
    mutating func resumed() {
        let digests = blocks.flatMap { $0.values.map { ($0.digest, 1) } }
        earlier = Dictionary(digests, uniquingKeysWith: +)
    }

    /// The broker has sent everything that had waited, so also what it sends again.
    mutating func caughtUp() { earlier = [:] }

    /// Returns whether a message has the content of one that may come again; counts each once.
    mutating func mayBeEarlier(_ message: MQTTMessage) -> Bool {
        let digest = earlier.isEmpty ? 0 : Self.digest(message)
        guard let count = earlier[digest], count > 0 else { return false }
        earlier[digest] = count - 1
        return true
    }

    /// Adds a message of QoS 1 whose record is stored together with this session.
    mutating func receive(_ message: MQTTMessage) {
        self[message.id] = Entry(digest: Self.digest(message))
    }

    /// Forgets a message whose record was not stored.
    mutating func forget(_ id: UInt16) { self[id] = nil }

    mutating func acknowledged(_ ids: [UInt16]) {
        // The stage is not stored.
        for id in ids { blocks[Int(id) / Self.blockSize][id]?.stage = .acknowledged }
    }

    /// Records that a ping was sent after all acknowledgements so far.
    ///
    /// Returns false if it would confirm nothing.
    mutating func pinged() -> Bool {
        var isUseful = false
        for index in blocks.indices where !blocks[index].isEmpty {
            for id in blocks[index].keys where blocks[index][id]?.stage == .acknowledged {
                blocks[index][id]?.stage = .pinged
                isUseful = true
            }
        }
        return isUseful
    }

    /// Forgets the messages that an answered ping confirms; returns false if there are none.
    mutating func answered() -> Bool {
        let before = count
        keep { $0.stage != .pinged }
        return count < before
    }

    /// Records that the connection has ended: what was not confirmed by then may come again.
    ///
    /// `wasHeard`: the broker sent something in it. In any other, nothing could come again.
    mutating func disconnected(wasHeard: Bool) {
        for index in blocks.indices {
            for id in blocks[index].keys {
                blocks[index][id]?.stage = .received
                let count = blocks[index][id]?.connections ?? 0
                if wasHeard, count < .max { blocks[index][id]?.connections = count + 1 }
            }
        }
        if wasHeard { markChanged { !$0.isEmpty } }
        keep { $0.connections < Self.connectionLimit }
    }

    private mutating func keep(where isKept: (Entry) -> Bool) {
        for index in blocks.indices where !blocks[index].isEmpty {
            let kept = blocks[index].filter { isKept($0.value) }
            guard kept.count < blocks[index].count else { continue }
            blocks[index] = kept
            changed.insert(index)
        }
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
