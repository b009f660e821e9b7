// The beacons heard lately: so many sightings a second of each, and each of its measurements once.
import Host
import Records

/// What becomes of a sighting.
enum SightingVerdict: Equatable {
    /// More of them than wanted.
    case tooOften
    case kept(MeasurementVerdict)
}

/// Keeps sightings of a beacon evenly spaced, and knows what each last measured.
///
/// A beacon is its kind and id: an id heard from a new address is still the same beacon.
/// The spacing is that of the generic cell rate algorithm (ITU-T I.371): one place each 1 / rate, which may be
/// taken up to a fifth early, so that a beacon that sends about as often as wanted is not halved.
struct HeardBeacons {
    /// Beacons remembered; with more, the half that was not heard for longest is forgotten.
    ///
    /// Those without a measurement go first, most of a crowd's addresses come once. A sensor that is forgotten has its
    /// measurement kept twice.
    static let limit = 4096
    /// More than any beacon sends (one each 20 ms): a rate that leaves nothing out, as a fast replay needs.
    static let everything = 1000.0

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
        /// The next place of a sighting.
        var due: BootInstant
        var newest: BootInstant
        var measurement: LastMeasurement?

        /// In place: with the whole table at hand, each call would copy it.
        mutating func take(
            _ mark: MeasurementMark?,
            _ telemetry: Telemetry,
            at now: BootInstant,
            _ limit: Limit
        ) -> SightingVerdict {
            newest = now
            guard let mark else { return admits(at: now, limit) ? .kept(.new) : .tooOften }
            var last = measurement ?? LastMeasurement()
            // Taken out and put back: so its arrays are never copied.
            measurement = nil
            defer { measurement = last }
            let verdict = last.judge(mark, telemetry, at: now)
            guard !last.givesWay(mark, at: now), admits(at: now, limit) else { return .tooOften }
            // A measurement that is not kept now is still new when it is heard once more.
            if verdict == .new { last.keep(mark, telemetry, at: now) }
            return .kept(verdict)
        }

        private mutating func admits(at now: BootInstant, _ limit: Limit) -> Bool {
            // A place further away than this was noted in another boot, whose clock is no matter now.
            let isForeign = due - now > limit.farthest
            guard now >= due - limit.early || isForeign else { return false }
            if isForeign { due = now }
            due = max(now, due) + limit.spacing
            return true
        }
    }

    /// The time from place to place, how much of it one may be taken early, and how far away the next one can be.
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

    /// `rate`: sightings a second, above 0; from `everything` on, all are kept.
    init(rate: Double) {
        let places = min(max(rate, 0.001), Self.everything)
        let spacing = places < Self.everything ? Duration.nanoseconds(Int64(1e9 / places)) : .zero
        limit = Limit(spacing: spacing)
    }

    /// Judges a sighting; a beacon without a mark always says something new.
    mutating func take(
        _ identity: BeaconIdentity,
        _ mark: MeasurementMark? = nil,
        _ telemetry: Telemetry = Telemetry(),
        at now: BootInstant
    ) -> SightingVerdict {
        let key = Key(identity)
        if let index = heard.index(forKey: key) {
            return heard.values[index].take(mark, telemetry, at: now, limit)
        }
        if heard.count >= Self.limit { forgetHalf() }
        var first = Heard(due: now, newest: now)
        let verdict = first.take(mark, telemetry, at: now, limit)
        heard[key] = first
        return verdict
    }

    /// A sighting that was kept before this start: its measurement is not new when it is heard once more.
    mutating func recall(_ sighting: Sighting) {
        guard let (stored, readings) = sighting.telemetry.marked,
            let mark = MeasurementMark(stored: stored)
        else { return }
        if heard.count >= Self.limit { forgetHalf() }
        let key = Key(sighting.identity)
        let next = sighting.stamp.boot + limit.spacing
        var beacon = heard[key] ?? Heard(due: next, newest: sighting.stamp.boot)
        var last = beacon.measurement ?? LastMeasurement()
        _ = last.judge(mark, readings, at: sighting.stamp.boot)
        last.keep(mark, readings, at: sighting.stamp.boot)
        beacon.measurement = last
        beacon.newest = sighting.stamp.boot
        beacon.due = next
        heard[key] = beacon
    }

    private mutating func forgetHalf() {
        let passers = heard.values.filter { $0.measurement == nil }.map(\.newest)
        // For fewer of them the table would have to be gone through too often.
        let isCrowd = passers.count >= Self.limit / 8
        let moments = (isCrowd ? passers : heard.values.map(\.newest)).sorted()
        let middle = moments[moments.count / 2]
        heard = heard.filter { _, beacon in
            beacon.newest > middle || isCrowd && beacon.measurement != nil
        }
    }
}
