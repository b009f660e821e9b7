// What was accepted and is not on the disk yet, for whoever has to tell of it while the writer hangs.
package import Records
import Synchronization

/// Records of one stream that are on their way to the disk.
package struct RecordsInFlight: Sendable, Equatable {
    package var stream: Stream
    /// The newest number that was committed before them; below zero where there was no database yet.
    package var after: Int64
    package var count: Int64

    package init(stream: Stream, after: Int64, count: Int64) {
        (self.stream, self.after, self.count) = (stream, after, count)
    }
}

/// Counts records from their acceptance to their commit, or to their loss; any thread may look.
///
/// Not those whose giver waits for them, nor sound, whose hole the next run tells of.
final class InFlight: Sendable {
    // The hot path: every sighting is counted.
    private let sightings = Atomic<Int64>(0)
    private let others = Mutex(Tally())

    /// Records by stream.
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
