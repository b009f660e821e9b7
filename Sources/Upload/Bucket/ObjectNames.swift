// What the objects of batches are called in a bucket, whatever is configured after their first try.
internal import Host
internal import Queue
internal import Requests
internal import Streams

/// Gives each batch the names of the time when it was frozen.
///
/// A store may have kept an object whose answer was lost: under another name its records would lie there twice.
struct ObjectNames {
    /// What the configuration has to do with a name.
    struct Names: Codable, Equatable {
        var compression: String
        /// Of streams, on the wire, by their own.
        var streams: [String: String]
    }

    private struct Past: Codable, Equatable {
        /// The last batch that was frozen under these.
        var through: Int64
        var names: Names
    }

    private struct Known: Codable, Equatable {
        /// Oldest first.
        var past: [Past] = []
        var now: Names
    }

    private static let memo = "objects"
    /// Nothing that still waits was frozen so many changes ago.
    private static let mostPast = 8

    private let known: Known

    /// Throws where the queue has to be asked, and its disk refuses.
    init(_ settings: DestinationSettings, _ queue: Queue) throws {
        let now = Names(settings, queue.streams.streams)
        var known = Self.read(queue.remembered(Self.memo)) ?? Known(now: now)
        if known.now != now {
            let last = try queue.perform { $0.newestBatch }
            known.past.append(Past(through: last, names: known.now))
            known.past = known.past.suffix(Self.mostPast)
            known.now = now
        }
        queue.remember(Self.memo, String(decoding: encodedJSON(known), as: UTF8.self))
        self.known = known
    }

    private static func read(_ memo: String?) -> Known? {
        memo.flatMap { try? JSONInput.decode(Known.self, from: Array($0.utf8), snakeCase: true) }
    }

    func of(_ batch: Batch) -> Names {
        known.past.first { batch.id <= $0.through }?.names ?? known.now
    }
}

extension ObjectNames.Names {
    fileprivate init(_ settings: DestinationSettings, _ streams: [Stream]) {
        compression = settings.compression.rawValue
        let named = streams.map { ("\($0)", settings.name(of: $0)) }
        self.streams = Dictionary(named, uniquingKeysWith: { first, _ in first })
    }
}
