// What was accepted and is not on the disk yet, for whoever has to tell of it while the writer hangs.
internal import Board
package import Host
package import Streams
internal import Synchronization

/// Records of one stream that are on their way to the disk.
package struct RecordsInFlight: Sendable, Equatable {
    package var stream: Stream
    /// The newest number that was committed before them.
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

extension Queue {
    /// What would be lost if the program ended now, as far as is known: part of it may be on the disk already.
    package var inFlight: [RecordsInFlight] {
        core.inFlight.counts.map { stream, count in
            RecordsInFlight(stream: stream, after: max(0, newest(stream)), count: count)
        }
    }

    /// Enters what of it did not reach this database, in which a later start of the program has it.
    package func note(lost records: RecordsInFlight, from: Stamp, to: Stamp) {
        let landed = min(records.count, max(0, newest(records.stream) - records.after))
        guard records.count > landed else { return }
        note(Loss(.dropped, records.stream, records: records.count - landed, from: from, to: to))
    }
}
