// The writer's part for upkeep: purging what was uploaded, and figures.
package import Host

extension Writer {
    /// Figures for `status`.
    package func statistics() throws -> [StreamStatistics] {
        try Stream.allCases.map { stream in
            let counters = counters[stream] ?? StreamCounters()
            let waiting = counters.waiting
            let oldest =
                try connection.integer(
                    "SELECT min(first) FROM batches WHERE stream=? AND state=0",
                    Int64(stream.rawValue)
                ) ?? counters.frozen.oldest(upTo: counters.next - 1)?.lowerBound
            return StreamStatistics(
                stream: stream,
                accepted: Int(
                    counters.uploaded + counters.quarantined + counters.evicted
                        + counters.ready + waiting
                ),
                pending: Int(waiting + counters.ready),
                pendingBytes: Int(pendingBytes(stream)),
                uploaded: Int(counters.uploaded),
                quarantined: Int(counters.quarantined),
                evicted: Int(counters.evicted),
                notKept: try notKept(stream),
                oldestPendingAt: try oldest.flatMap { try time(of: $0, in: stream) }
            )
        }
    }

    private func notKept(_ stream: Stream) throws -> Int {
        Int(
            try connection.integer(
                "SELECT not_kept FROM streams WHERE id=?",
                Int64(stream.rawValue)
            ) ?? 0
        )
    }

    private func time(of sequence: Int64, in stream: Stream) throws -> WallTime? {
        try capture(of: sequence, in: stream).map { clockMap.resolve($0.stamp, boot: $0.boot).wall }
    }

    /// Stored bytes of what a stream has not uploaded, by the average size of its records.
    func pendingBytes(_ stream: Stream) -> Int64 {
        guard let counters = counters[stream] else { return 0 }
        let average = counters.inserted > 0 ? counters.bytes / counters.inserted : 48
        return (counters.waiting + counters.ready) * average
    }

    /// Bytes of the database file that new records can use again.
    package func reusableBytes() throws -> Int64 {
        (try connection.integer("PRAGMA freelist_count") ?? 0) * pageBytes
    }

    /// Ids of the database's records.
    package var ids: RecordIDs { recordIDs }
}

/// Figures of one stream: accepted = uploaded + pending + quarantined + evicted.
package struct StreamStatistics: Sendable, Equatable {
    package var stream: Stream
    package var accepted: Int
    package var pending: Int
    package var pendingBytes: Int
    package var uploaded: Int
    package var quarantined: Int
    package var evicted: Int
    /// Chunks of sound below the level that is kept.
    package var notKept: Int
    package var oldestPendingAt: WallTime?

    /// Surveys are made by hand, and by few: their stream is shown once there is one.
    package var isWorthTelling: Bool { stream != .surveys || accepted > 0 }
}
