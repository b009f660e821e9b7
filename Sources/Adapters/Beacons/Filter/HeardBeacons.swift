// Remembers recent beacons to limit their rate and to store each measurement once.
import Host
import Records

/// Spaces the sightings of each beacon evenly, and remembers its last measurement.
///
/// A beacon is its kind and id: an id heard from a new address is the same beacon. Spacing follows
/// the generic cell rate algorithm (ITU-T I.371): one slot every 1 / rate. A sighting may come up
/// to a fifth of the spacing early. Otherwise a beacon that sends at about the limit would lose
/// every other sighting.
struct HeardBeacons {
    /// Beacons remembered; above this, the half that was not heard for longest is evicted.
    ///
    /// Beacons without a measurement go first, because most addresses in a crowd are heard only
    /// once. An evicted sensor has its current measurement stored twice.
    static let limit = 4096
    /// A rate that disables the limit, for a fast replay.
    ///
    /// No beacon sends more than 50 times per second.
    static let unlimitedRate = 1000.0

    private struct Key: Hashable {
        var kind: BeaconKind
        var id: String
        /// 0 for a beacon with an id.
        var address: UInt64

        init(_ identity: BeaconIdentity) {
            kind = identity.kind
            id = identity.beaconID
            address = identity.beaconID.isEmpty ? identity.address.value : 0
        }
    }

    private struct Heard {
        /// When the next slot is due.
        var due: BootInstant
        var newest: BootInstant
        var measurement: LastMeasurement?

        /// Evaluates a sighting in place, to avoid copying the entry.
        mutating func receive(
            _ mark: MeasurementMark?,
            _ telemetry: Telemetry,
            at now: BootInstant,
            _ limit: Limit
        ) -> MeasurementVerdict {
            newest = now
            guard let mark else { return consumeSlot(at: now, limit) ? .new : .tooOften }
            var last = measurement ?? LastMeasurement()
            // Moved out and back so that its arrays are never copied.
            measurement = nil
            defer { measurement = last }
            let verdict = last.evaluate(mark, telemetry, at: now)
            guard !last.givesWay(mark, at: now), consumeSlot(at: now, limit) else {
                return .tooOften
            }
            // A measurement that is not stored now is still new when heard again.
            if verdict == .new { last.keep(mark, telemetry, at: now) }
            return verdict
        }

        /// Uses the next slot and returns true; false if it is still too early for that.
        private mutating func consumeSlot(at now: BootInstant, _ limit: Limit) -> Bool {
            // A later slot comes from an earlier boot and is ignored.
            let isForeign = due - now > limit.farthest
            guard now >= due - limit.early || isForeign else { return false }
            if isForeign { due = now }
            due = max(now, due) + limit.spacing
            return true
        }
    }

    /// The spacing of slots, how early one may be used, and how far away the next can be.
    private struct Limit {
        var spacing: Duration
        var early: Duration
        var farthest: Duration

        init(spacing: Duration) {
            (self.spacing, early, farthest) = (spacing, spacing / 5, spacing * 2)
        }
    }

    private let limit: Limit
    private var heard: [Key: Heard] = [:]

    /// Limits to `rate` sightings per second (above 0); `unlimitedRate` or more disables the limit.
    init(rate: Double) {
        let rate = min(max(rate, 0.001), Self.unlimitedRate)
        let spacing = rate < Self.unlimitedRate ? Duration.nanoseconds(Int64(1e9 / rate)) : .zero
        limit = Limit(spacing: spacing)
    }

    /// Evaluates a sighting; without a measurement mark it is always new.
    mutating func receive(
        _ identity: BeaconIdentity,
        _ mark: MeasurementMark? = nil,
        _ telemetry: Telemetry = Telemetry(),
        at now: BootInstant
    ) -> MeasurementVerdict {
        let key = Key(identity)
        if let index = heard.index(forKey: key) {
            return heard.values[index].receive(mark, telemetry, at: now, limit)
        }
        if heard.count >= Self.limit { forgetHalf() }
        var first = Heard(due: now, newest: now)
        let verdict = first.receive(mark, telemetry, at: now, limit)
        heard[key] = first
        return verdict
    }

    /// Remembers a sighting stored before this start, so that its measurement is not stored again.
    mutating func recall(_ sighting: Sighting) {
        guard let mark = sighting.telemetry.mark.flatMap(MeasurementMark.init(stored:)) else {
            return
        }
        if heard.count >= Self.limit { forgetHalf() }
        let key = Key(sighting.identity)
        let next = sighting.stamp.boot + limit.spacing
        var beacon = heard[key] ?? Heard(due: next, newest: sighting.stamp.boot)
        var last = beacon.measurement ?? LastMeasurement()
        _ = last.evaluate(mark, sighting.telemetry, at: sighting.stamp.boot)
        last.keep(mark, sighting.telemetry, at: sighting.stamp.boot)
        beacon.measurement = last
        beacon.newest = sighting.stamp.boot
        beacon.due = next
        heard[key] = beacon
    }

    private mutating func forgetHalf() {
        let unmeasured = heard.values.filter { $0.measurement == nil }.map(\.newest)
        // If fewer can be evicted, evictions would be too frequent.
        let isCrowd = unmeasured.count >= Self.limit / 8
        let moments = (isCrowd ? unmeasured : heard.values.map(\.newest)).sorted()
        let middle = moments[moments.count / 2]
        heard = heard.filter { _, beacon in
            beacon.newest > middle || isCrowd && beacon.measurement != nil
        }
        invariant(heard.count < Self.limit, "there is room for a beacon after others are forgotten")
    }
}
