// What the objects of batches are called in a bucket, whatever is configured after their first try.
import Host
import HTTP
import JSON
import Queue
import Records

/// Gives each batch the names of the time when it was frozen.
///
/// A store may have kept an object whose answer was lost: under another name its records would lie there twice.
struct ObjectNames {
    /// What the configuration has to do with a name.
    struct Names: Codable, Equatable {
        var compression: String
        var device: String
        /// Of streams, on the wire, by their own.
        var streams: [String: String]
    }

    private struct Past: Codable, Equatable {
        /// Of batches that were frozen under these and wait; their numbers are others in the next database.
        var keys: Set<String>
        var names: Names
    }

    private struct Known: Codable, Equatable {
        /// Oldest first.
        var past: [Past] = []
        var now: Names

        /// `waiting`: the keys of all batches that are frozen.
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

    /// Throws where the queue's disk refuses.
    init(_ settings: DestinationSettings, _ queue: Queue) throws {
        let now = Names(settings, queue.streams.streams)
        // Before there is a database nothing is remembered: it is waited for.
        let waiting = try queue.perform { try $0.readyKeys() }
        var known = Self.read(queue.remembered(Self.memo)) ?? Known(now: now)
        if known.now != now { known.change(to: now, waiting) }
        // What waits in a database that was set aside is not known before it is read.
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
