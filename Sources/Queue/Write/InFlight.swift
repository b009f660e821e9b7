// Counts records that were accepted but are not on disk yet, for reports while the writer hangs.
package import Records
import Synchronization

/// The number of one stream's records that are not on disk yet.
package struct RecordsInFlight: Sendable, Equatable {
    package var stream: Stream
    /// The newest number committed before them; negative if no database was open yet.
    package var after: Int64
    package var count: Int64

    package init(stream: Stream, after: Int64, count: Int64) {
        (self.stream, self.after, self.count) = (stream, after, count)
    }
}

/// Counts records from acceptance until they are committed or lost.
///
/// Thread-safe. Excludes `put` records, whose sender is still waiting, and audio, whose gap the
/// next run reports.
final class InFlight: Sendable {
    // Hot path: counts every sighting.
    private let sightings = Atomic<Int64>(0)
    private let others = Mutex(Tally())

    /// Record counts by stream.
    struct Tally: Sendable {
        var sightings: Int64 = 0
        var rows: [Stream: Int64] = [:]
    }

    func accepted(_ stream: Stream) {
        if stream == .beacons {
            sightings.wrappingAdd(1, ordering: .relaxed)
        } else {
            others.withLock { $0.rows[stream, default: 0] += 1 }
        }
    }

    func settled(_ tally: Tally) {
        if tally.sightings > 0 { sightings.wrappingSubtract(tally.sightings, ordering: .relaxed) }
        guard !tally.rows.isEmpty else { return }
        others.withLock { others in
            for (stream, count) in tally.rows { others.rows[stream, default: 0] -= count }
        }
    }

    func settled(_ loss: Loss) {
        settled(
            loss.stream == .beacons
                ? Tally(sightings: loss.records) : Tally(rows: [loss.stream: loss.records])
        )
    }

    var counts: [Stream: Int64] {
        var counts = others.withLock { $0.rows }
        counts[.beacons] = sightings.load(ordering: .relaxed)
        return counts.filter { $0.value > 0 }
    }
}
