// Computes stream statistics and the reusable space of the file.
package import Host
package import Records
import SQLite

extension WriterMemory {
    /// Bytes of records in this database that were not uploaded.
    var pendingBytes: Int64 {
        var sum: Int64 = 0
        live.forEach { sum += $0.pendingBytes }
        return sum
    }

    /// Bytes of pending records that are in no batch; estimated from the streams' average sizes.
    var evictableBytes: Int64 {
        var sum: Int64 = 0
        // Not the product of both: a large queue of small records would overflow it.
        live.forEach {
            sum += Int64(
                Double($0.pendingBytes) * Double($0.waiting) / Double(max(1, $0.waiting + $0.ready))
            )
        }
        return sum
    }

    func heldCount(_ stream: Stream) -> Int {
        stream == .audio ? held.ranges.reduce(0) { $0 + $1.count } : 0
    }

    /// Returns a stream's statistics, including its records in older databases.
    func statistics(_ kind: StreamKind) -> StreamStatistics {
        let stream = kind.stream
        let older = older.filter { $0.key.stream == stream }.values
        let all = [self[Partition(stream)]] + older
        func sum(_ value: (StreamCounters) -> Int64) -> Int {
            Int(all.reduce(0) { $0 + value($1) })
        }
        var figures = StreamStatistics(
            stream: stream,
            accepted: sum { $0.uploaded + $0.quarantined + $0.evicted + $0.ready + $0.waiting }
                + heldCount(stream),
            pending: sum { $0.waiting + $0.ready },
            pendingBytes: Int(self[Partition(stream)].pendingBytes),
            uploaded: sum(\.uploaded),
            quarantined: sum(\.quarantined),
            evicted: sum(\.evicted),
            notKept: sum(\.notKept),
            oldestPendingAt: nil
        )
        figures.held = heldCount(stream)
        figures.heldBytes = stream == .audio ? Int(numbers.heldBytes) : 0
        figures.isWorthTelling = kind.isAlwaysShown || figures.accepted > 0
        return figures
    }
}

extension Writer {
    /// Returns the bytes of free pages in the database file.
    package func reusableBytes() throws -> Int64 {
        (try connection.integer("PRAGMA freelist_count") ?? 0) * pageBytes
    }
}

/// Statistics of one stream: accepted = uploaded + pending + held + quarantined + evicted.
package struct StreamStatistics: Sendable, Equatable {
    package var stream: Stream
    package var accepted: Int
    package var pending: Int
    package var pendingBytes: Int
    package var uploaded: Int
    package var quarantined: Int
    package var evicted: Int
    /// Audio chunks below the minimum level.
    package var notKept: Int
    package var oldestPendingAt: WallTime?
    /// Uploaded records that are to be sent again.
    package var resending = 0
    /// Audio chunks that nobody has marked, and their stored bytes.
    package var held = 0
    package var heldBytes = 0
    /// When the oldest held chunk was captured, and the newest one's end.
    package var heldSpan: ClosedRange<WallTime>?

    /// Whether `status` shows the stream: some only once there is a record.
    package var isWorthTelling = true
}
