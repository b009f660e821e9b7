import Host
import Records
import SQLite

@testable import Queue
import QueueSupport

// Test queries inside a transaction and of single streams.

extension Writer {
    func pending(_ stream: Records.Stream, newest: Bool = false) throws -> PendingRange? {
        let counters = memory[Partition(stream)]
        return (newest ? counters.newestWaiting : counters.oldestWaiting).map {
            PendingRange(
                stream: stream,
                first: $0.lowerBound,
                last: $0.upperBound,
                clockMap: clockMap.newest,
                synced: memory.bootIsSynced
            )
        }
    }

    func nextReady(_ stream: Records.Stream) throws -> Batch? {
        try batches("WHERE state=0 AND stream=? ORDER BY id LIMIT 1", Int64(stream.number)).first
    }

    /// Purges until nothing is due; returns how many records of a stream were deleted.
    func purge(_ stream: Records.Stream, retention: Duration) throws -> Int {
        let table = streams[stream]?.table ?? ""
        let before = try connection.integer("SELECT count(*) FROM \(table)") ?? 0
        while try purge(retention: retention) {}
        return Int(before - (try connection.integer("SELECT count(*) FROM \(table)") ?? 0))
    }

    func id(_ stream: Records.Stream, _ sequence: Int64) throws -> String {
        try RecordIDs(connection, stream, sequence...sequence).id(sequence)
    }
}

extension Reader {
    /// Returns the existing rows of a range.
    func there(
        _ stream: Records.Stream,
        _ range: ClosedRange<Int64>,
        _ body: (Stored<PlainRow>) throws -> Void
    ) throws {
        for part in try parts(stream, range) { try rows(kind(of: stream), part, body) }
    }

    func sightingsThere(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Sighting>) throws -> Void
    ) throws {
        for part in try parts(.beacons, range) { try sightings(part, body) }
    }

    func chunksThere(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Chunk>) throws -> Void
    ) throws {
        for part in try parts(.audio, range) { try chunks(part, body) }
    }

    private func parts(
        _ stream: Records.Stream,
        _ range: ClosedRange<Int64>
    ) throws -> [ClosedRange<Int64>] {
        let rows = try query("SELECT id FROM \(kind(of: stream).table) ORDER BY id")
        var parts = FrozenRanges()
        while try rows.step() {
            let id = rows.required(0)
            if range.contains(id) { parts.insert(id...id) }
        }
        return (parts.through > 0 ? [1...parts.through] : []) + parts.islands
    }

    func events(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<PlainRow>, _ kind: String, _ source: String, _ detail: String) throws ->
            Void
    ) throws {
        try there(.events, range) { stored in
            let texts = stored.record.values.map { value in
                if case .text(let text) = value { text } else { "" }
            }
            try body(stored, texts[0], texts[1], texts[2])
        }
    }

    func id(_ stream: Records.Stream, _ sequence: Int64) throws -> String {
        try ids(stream, sequence...sequence).id(sequence)
    }
}

/// Purges on the writer's thread; returns the number of records.
func purge(_ queue: Queue, _ stream: Records.Stream, _ retention: Duration) throws -> Int {
    try queue.perform { try $0.purge(stream, retention: retention) }
}

extension Queue {
    /// Returns the counters of the live database alone.
    func liveStatistics() throws -> [StreamStatistics] {
        try perform { writer in writer.streams.kinds.map { writer.liveStatistics($0) } }
    }
}

extension Writer {
    func liveStatistics(_ kind: StreamKind) -> StreamStatistics {
        var memory = memory
        memory.older = [:]
        return memory.statistics(kind)
    }
}
