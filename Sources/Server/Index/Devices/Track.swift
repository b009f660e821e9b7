// The track of a device on a day, from its file of fixes.
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
    }

    /// Bytes of a file that are read; a day of one fix per second has fewer.
    private static let maxBytes = 32 << 20
    /// Fixes more than this many median steps apart, and more than two minutes, are not joined.
    private static let maxSteps: Int64 = 5

    package private(set) var parts: [[Fix]] = []
    /// True if the file was only read in part.
    package private(set) var isCut = false

    package var fixes: Int { parts.reduce(0) { $0 + $1.count } }

    package var last: Fix? { parts.last?.last }

    /// Reads one stream's file of a day; empty if it does not exist or has no fixes.
    package init(_ path: String) throws {
        guard let file = try LineFile.open(path) else { return }
        let size = try file.size()
        var fixes: [Fix] = []
        let end = try file.forEachLine(from: 0, to: size, budget: Self.maxBytes) {
            if let fix = $0.flatMap(Self.fix) { fixes.append(fix) }
        }
        isCut = end < size
        fixes.sort { $0.time < $1.time }
        parts = Self.split(fixes)
    }

    /// Nil if the record has no position.
    package static func fix(_ line: RecordLine) -> Fix? {
        guard let time = line.time("timestamp"), let latitude = line.number("latitude"),
            let longitude = line.number("longitude"), abs(latitude) <= 90, abs(longitude) <= 180
        else { return nil }
        let altitude = line.number("altitude")
        return Fix(time: time, latitude: latitude, longitude: longitude, altitude: altitude)
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
}
