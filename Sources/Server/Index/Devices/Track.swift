// The track of a device, from its files of fixes.
import Glibc
import Host
package import ServerBase

/// Fixes in order of time, split into parts at gaps, where the position is unknown.
package struct Track {
    package struct Fix {
        /// Milliseconds since 1970.
        package var time: Int64
        package var latitude: Double
        package var longitude: Double
        /// Metres above mean sea level.
        package var altitude: Double?
        /// Metres; nil if not reported.
        package var accuracy: Double?

        /// Returns the metres to another fix, on the mean sphere; right for short distances.
        package func distance(to other: Fix) -> Double {
            let (north, east) = (other.latitude - latitude, other.longitude - longitude)
            // The shorter way around the earth.
            let turn = east - 360 * (east / 360).rounded()
            return hypot(north, turn * cos(latitude * .pi / 180)) * Track.degree
        }
    }

    /// A part of a file, and the time of the records that are meant.
    package typealias Extent = (path: String, bytes: Range<Int64>, time: Range<Int64>)
    /// A position that a device did not leave, and how far its fixes were from it.
    package typealias Stay = (latitude: Double, longitude: Double, metres: Double)

    /// Metres per degree of latitude, on the mean sphere.
    package static let degree = 111_195.0
    /// Bytes of all files that are read; a day of one fix per second has fewer.
    private static let maxBytes = 32 << 20
    /// Fixes more than this many median steps apart, and more than two minutes, are not joined.
    private static let maxSteps: Int64 = 5

    package private(set) var parts: [[Fix]] = []
    /// True if only the first records of each extent were read.
    package private(set) var isCut = false

    package var fixes: Int { parts.reduce(0) { $0 + $1.count } }

    package var last: Fix? { parts.last?.last }

    /// Reads extents, each up to its share of all bytes; empty if there are no fixes.
    package init(_ extents: [Extent]) throws {
        let total = extents.reduce(0) { $0 + $1.bytes.count }
        // A file is read in blocks of 4 kB.
        let every = total <= Self.maxBytes ? 1 : extents.count / (Self.maxBytes / 4096) + 1
        let share = total <= Self.maxBytes ? total : Self.maxBytes / max(1, extents.count / every)
        isCut = every > 1
        var fixes: [Fix] = []
        for (_, extent) in extents.enumerated().filter({ $0.offset % every == 0 }) {
            guard let file = try LineFile.open(extent.path) else { continue }
            let end = min(extent.bytes.upperBound, try file.size())
            guard extent.bytes.lowerBound < end else { continue }
            let stop = try file.forEachLine(
                from: extent.bytes.lowerBound,
                to: end,
                budget: max(1, share)
            ) { line in
                guard let fix = line.flatMap(Self.fix), extent.time.contains(fix.time) else {
                    return
                }
                fixes.append(fix)
            }
            if stop < end { isCut = true }
        }
        fixes.sort { $0.time < $1.time }
        parts = Self.split(fixes)
    }

    /// Nil if the record has no position.
    package static func fix(_ line: RecordLine) -> Fix? {
        guard let time = line.time("timestamp"), let latitude = line.number("latitude"),
            let longitude = line.number("longitude"), abs(latitude) <= 90, abs(longitude) <= 180
        else { return nil }
        return Fix(
            time: time,
            latitude: latitude,
            longitude: longitude,
            altitude: line.number("altitude"),
            accuracy: line.number("horizontal_accuracy")
        )
    }

    private static func split(_ fixes: [Fix]) -> [[Fix]] {
        let steps = zip(fixes, fixes.dropFirst()).map { $1.time - $0.time }.sorted()
        let usual = steps.isEmpty ? 0 : steps[steps.count / 2]
        let limit = max(120_000, maxSteps * usual)
        var parts: [[Fix]] = []
        for fix in fixes {
            if let last = parts.last?.last, fix.time - last.time <= limit {
                parts[parts.count - 1].append(fix)
            } else {
                parts.append([fix])
            }
        }
        return parts
    }

    // MARK: Drawing

    /// Returns the parts with at most so many fixes: those that are far enough from the one before.
    package func thinned(to maximum: Int) -> [[Fix]] {
        let every = parts.count / (maximum / 2) + 1
        var shown = parts.enumerated().filter {
            $0.offset % every == 0 || $0.offset == parts.count - 1
        }.map(\.element)
        var least = 1.0
        while shown.reduce(0, { $0 + $1.count }) > maximum, least < 1e8 {
            shown = shown.map { Self.thinned($0, least) }
            least *= 2
        }
        return shown
    }

    /// Leaves out fixes that are nearer than so many metres to the one before; the last one stays.
    private static func thinned(_ part: [Fix], _ least: Double) -> [Fix] {
        var kept: [Fix] = []
        for (index, fix) in part.enumerated() {
            let isFar = kept.last.map { $0.distance(to: fix) >= least } ?? true
            if isFar || index == part.count - 1 { kept.append(fix) }
        }
        return kept
    }

    /// Returns the median position of a device that stayed where it was; nil if it moved.
    ///
    /// It stayed if each fix is within 50 m of it, or within three times the fix's own accuracy.
    package var stay: Stay? {
        let all = parts.flatMap { $0 }
        guard !all.isEmpty else { return nil }
        let middle = Fix(
            time: 0,
            latitude: all.map(\.latitude).sorted()[all.count / 2],
            longitude: all.map(\.longitude).sorted()[all.count / 2]
        )
        var far = 0.0
        for fix in all {
            let metres = middle.distance(to: fix)
            // An accuracy of kilometres says nothing about a stay.
            guard metres <= max(50, 3 * min(fix.accuracy ?? 0, 200)) else { return nil }
            far = max(far, metres)
        }
        return (middle.latitude, middle.longitude, far)
    }
}
