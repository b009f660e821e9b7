// Computes a survey's record: its track, and each beacon's figures.
import Host
import JSON
import Queue
import Records

/// The figures of one beacon; its memory does not grow with the sightings.
struct BeaconFigures {
    /// Valid RSSI in dBm (Core Specification, Vol 4, Part E, 7.7.65.2: 127 means not available).
    private static let levels = -127...20

    private(set) var count: Int64 = 0
    /// Sightings by RSSI, from -127 dBm to the strongest one.
    private var histogram: [UInt32] = []
    private var heard: Int64 = 0
    private var sum: Double = 0
    private var squares: Double = 0
    private var last: (sample: SurveySample, wall: WallTime?)?
    private(set) var longestGap: Int64 = 0
    private var places: Int64 = 0
    private var latitudes = 0.0
    private var longitudes = 0.0
    private var strongest: (rssi: Int, place: Place)?

    /// Adds a sighting; `wall` is nil if the clock was certainly wrong.
    mutating func add(_ sample: SurveySample, wall: WallTime?) {
        count += 1
        if let last, last.sample.boot == sample.boot {
            let gap = (sample.stamp.boot - last.sample.stamp.boot).milliseconds
            longestGap = max(longestGap, gap)
        } else if let before = last?.wall, let wall {
            // Across a reboot only the wall clock gives the gap.
            longestGap = max(longestGap, wall.milliseconds &- before.milliseconds)
        }
        last = (sample, wall)
        if let place = sample.place {
            places += 1
            latitudes += place.latitude
            longitudes += place.longitude
        }
        guard let rssi = sample.rssi, Self.levels.contains(rssi) else { return }
        let level = rssi - Self.levels.lowerBound
        if histogram.count <= level {
            histogram += [UInt32](repeating: 0, count: level + 1 - histogram.count)
        }
        histogram[level] += 1
        heard += 1
        sum += Double(rssi)
        squares += Double(rssi * rssi)
        if let place = sample.place, rssi > strongest?.rssi ?? .min { strongest = (rssi, place) }
    }

    /// The median RSSI; of an even number, the mean of the two in the middle.
    var median: Double { Double(level((heard + 1) / 2) + level(heard / 2 + 1)) / 2 }

    /// Returns the RSSI of the n-th weakest sighting.
    private func level(_ number: Int64) -> Int {
        var below: Int64 = 0
        for (level, sightings) in histogram.enumerated() {
            below += Int64(sightings)
            if below >= number { return level + Self.levels.lowerBound }
        }
        return Self.levels.lowerBound
    }

    func write(_ key: BeaconKey, to json: inout JSONWriter) {
        json.object { json in
            json.field("kind", key.kind.name)
            json.field("beacon_id", key.id)
            json.field("count", count)
            if heard > 0 {
                let mean = sum / Double(heard)
                let deviation = max(0, squares / Double(heard) - mean * mean).squareRoot()
                json.field("rssi_mean", scaled: Int64((mean * 10).rounded()), decimals: 1)
                json.field("rssi_median", scaled: Int64((median * 10).rounded()), decimals: 1)
                json.field("rssi_stddev", scaled: Int64((deviation * 10).rounded()), decimals: 1)
                json.field("rssi_min", Int64(level(1)))
                json.field("rssi_max", Int64(level(heard)))
            }
            json.field("longest_gap", scaled: longestGap, decimals: 3)
            json.field("positioned", places)
            guard places > 0 else { return }
            let centre = Place(
                latitude: latitudes / Double(places),
                longitude: longitudes / Double(places)
            )
            json.field("centre", centre)
            if let strongest { json.field("strongest_at", strongest.place) }
        }
    }
}

/// Identifies a beacon: sightings with equal keys are of one beacon.
struct BeaconKey: Hashable, Comparable {
    var kind: BeaconKind
    var id: String

    static func < (left: Self, right: Self) -> Bool {
        (left.kind.rawValue, left.id) < (right.kind.rawValue, right.id)
    }
}

/// The figures of the gateway's track.
struct TrackFigures {
    private(set) var fixes: Int64 = 0
    private var metres = 0.0
    private var first: Place?
    private var last: Place?
    private var south = 90.0
    private var north = -90.0
    private var west = 180.0
    private var east = -180.0

    mutating func add(_ place: Place) {
        fixes += 1
        if let last { metres += last.metres(to: place) }
        first = first ?? place
        last = place
        south = min(south, place.latitude)
        north = max(north, place.latitude)
        west = min(west, place.longitude)
        east = max(east, place.longitude)
    }

    func write(to json: inout JSONWriter) {
        json.object { json in
            json.field("fixes", fixes)
            guard let first, let last else { return }
            json.field("distance", scaled: Int64((metres * 10).rounded()), decimals: 1)
            json.field("first", first)
            json.field("last", last)
            json.field("south_west", Place(latitude: south, longitude: west))
            json.field("north_east", Place(latitude: north, longitude: east))
        }
    }
}

/// The figures of a whole survey.
struct SurveyFigures {
    /// The most beacons in one record, which has to fit into a request.
    ///
    /// Sightings of further beacons are only counted.
    static let limit = 5000

    private var track = TrackFigures()
    private var beacons: [BeaconKey: BeaconFigures] = [:]
    private(set) var sightings: Int64 = 0
    private var others: Int64 = 0
    private var range: ClosedRange<Int64>?

    /// Reads the sightings of an ended survey; memory grows only with the number of beacons.
    init(_ survey: OpenSurvey, _ reader: Reader, dates: RecordDates) throws {
        try reader.track { track.add($1) }
        guard let end = survey.end, survey.first <= end.last else { return }
        range = survey.first...end.last
        var keys: [Int64: BeaconKey] = [:]
        // Numbers below 1 are sightings in a quarantined database.
        try reader.samples(min(end.last, max(1, survey.first))...end.last) { sample in
            sightings += 1
            guard let key = try keys[sample.beacon] ?? reader.beaconKey(sample.beacon) else {
                others += 1
                return
            }
            if keys.count >= Self.limit { keys.removeAll() }
            keys[sample.beacon] = key
            guard beacons.count < Self.limit || beacons[key] != nil else {
                others += 1
                return
            }
            let (wall, quality) = dates.resolve(sample.stamp, boot: sample.boot)
            // Many boards without a hardware clock start in 1970.
            let isWrong = quality == .unsynced && wall < .release
            beacons[key, default: BeaconFigures()].add(sample, wall: isWrong ? nil : wall)
        }
    }

    /// The JSON object with `sightings`, `track` and `beacons`, most heard first.
    var json: String {
        var json = JSONWriter()
        json.object { json in
            json.field("sightings", sightings)
            let missing = Int64(range?.count ?? 0) - sightings
            // Evicted during the survey, or left in a damaged database.
            if missing > 0 { json.field("missing_sightings", missing) }
            if others > 0 { json.field("other_sightings", others) }
            json.key("track")
            track.write(to: &json)
            json.key("beacons")
            json.array { json in
                let sorted = beacons.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
                for (key, figures) in sorted { figures.write(key, to: &json) }
            }
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }
}

extension Reader {
    fileprivate func beaconKey(_ row: Int64) throws -> BeaconKey? {
        try beacon(row).map { BeaconKey(kind: $0.kind, id: $0.beaconID) }
    }
}

extension JSONWriter {
    fileprivate mutating func field(_ key: String, _ place: Place) {
        self.key(key)
        object {
            $0.field("latitude", scaled: Int64((place.latitude * 1e7).rounded()), decimals: 7)
            $0.field("longitude", scaled: Int64((place.longitude * 1e7).rounded()), decimals: 7)
        }
    }
}
