// Names the objects of batches in a bucket; a name stays the same after the first try.
import Host
import HTTP
import JSON
import Queue
import Records

/// Gives each batch the names that were configured when it was frozen.
///
/// A store may have kept an object whose answer was lost: under another name its records would be
/// stored twice.
struct ObjectNames {
    /// The configured parts of an object's name.
    struct Names: Codable, Equatable {
        var compression: String
        var device: String
        /// Wire names of streams, by the stream's own name.
        var streams: [String: String]
    }

    private struct Past: Codable, Equatable {
        /// Keys of pending batches frozen under these names; batch numbers change with the
        /// database.
        var keys: Set<String>
        var names: Names
    }

    private struct Known: Codable, Equatable {
        /// Oldest first.
        var past: [Past] = []
        var now: Names

        /// `waiting`: the keys of all frozen batches.
        mutating func change(to names: Names, _ waiting: Set<String>) {
            let older = past.reduce(into: Set<String>()) { $0.formUnion($1.keys) }
            past.append(Past(keys: waiting.subtracting(older), names: now))
            now = names
        }

        mutating func forget(allBut waiting: Set<String>) {
            for index in past.indices { past[index].keys.formIntersection(waiting) }
            past.removeAll { $0.keys.isEmpty }
        }
    }

    private static let memo = "objects"

    private let known: Known

    /// Loads the stored names and adds the configured ones; throws if the queue's disk fails.
    init(_ settings: DestinationSettings, _ queue: Queue) throws {
        let now = Names(settings, queue.streams.streams)
        // Waits until there is a database, because nothing is stored before.
        let waiting = try queue.perform { try $0.readyKeys() }
        var known = Self.read(queue.remembered(Self.memo)) ?? Known(now: now)
        if known.now != now { known.change(to: now, waiting) }
        // The pending batches of a quarantined database are unknown until it is read.
        let isRead = !queue.setAside.contains { $0.waiting == nil }
        if isRead { known.forget(allBut: waiting) }
        queue.remember(Self.memo, String(decoding: encodedJSON(known), as: UTF8.self))
        self.known = known
    }

    private static func read(_ memo: String?) -> Known? {
        memo.flatMap { try? JSONInput.decode(Known.self, from: Array($0.utf8), snakeCase: true) }
    }

    func of(_ batch: Batch) -> Names {
        known.past.first { $0.keys.contains(batch.key) }?.names ?? known.now
    }
}

extension ObjectNames.Names {
    fileprivate init(_ settings: DestinationSettings, _ streams: [Stream]) {
        compression = settings.compression.rawValue
        device = settings.deviceID
        let named = streams.map { ("\($0)", settings.name(of: $0)) }
        self.streams = Dictionary(named, uniquingKeysWith: { first, _ in first })
    }
}
