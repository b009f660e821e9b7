// The beacons heard lately: so many sightings a second of each, and each of its measurements once.
internal import Host
internal import Queue
internal import Streams

/// What becomes of a sighting.
enum SightingVerdict: Equatable {
    /// More of them than wanted.
    case tooOften
    case kept(MeasurementVerdict)
}

/// Keeps at most so many sightings of a beacon in any stretch of time, and knows what each last measured.
///
/// A beacon is its kind and id: an id heard from a new address is still the same beacon.
struct HeardBeacons {
    /// Beacons remembered; with more, the half that was not heard for longest is forgotten.
    static let limit = 4096

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

    /// When the last sightings were kept, as a ring: `next` is the oldest once the ring is full.
    private struct Heard {
        var times: [BootInstant] = []
        var next = 0
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
            guard admits(at: now, limit) else { return .tooOften }
            // What is not kept now is still new when its repeat is.
            if verdict == .new { last.keep(mark, telemetry, at: now) }
            return .kept(verdict)
        }

        private mutating func admits(at now: BootInstant, _ limit: Limit) -> Bool {
            guard times.count == limit.count else {
                times.append(now)
                return true
            }
            guard now - times[next] >= limit.stretch else { return false }
            times[next] = now
            next = (next + 1) % limit.count
            return true
        }
    }

    /// `count` may be kept in each `stretch`.
    private struct Limit {
        var count: Int
        var stretch: Duration
    }

    private let limit: Limit
    private var heard: [Key: Heard] = [:]

    /// `rate`: sightings a second, above 0; 4 means four in any second, 0.5 one in any two.
    init(rate: Double) {
        let rate = min(max(rate, 0.001), 1000)
        let count = Int(rate.rounded(.up))
        limit = Limit(
            count: count,
            stretch: .milliseconds(Int64(Double(count) / rate * 1000))
        )
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
        var first = Heard(newest: now)
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
        var beacon = heard[key] ?? Heard(newest: sighting.stamp.boot)
        var last = beacon.measurement ?? LastMeasurement()
        _ = last.judge(mark, readings, at: sighting.stamp.boot)
        last.keep(mark, readings, at: sighting.stamp.boot)
        beacon.measurement = last
        beacon.newest = sighting.stamp.boot
        heard[key] = beacon
    }

    private mutating func forgetHalf() {
        let middle = heard.values.map(\.newest).sorted()[heard.count / 2]
        heard = heard.filter { $0.value.newest > middle }
    }
}
