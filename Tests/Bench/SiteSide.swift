// Records as a site has them: no two moments, signals or readings follow from those before.
import Glibc
import Host
import Queue
import Records

enum SiteSide {
    /// Stores ten sightings per second; if asked for fixes, also one every ten seconds.
    static func fill(_ task: SideTask) throws -> Figures {
        let queue = try task.queue()
        var site = try Site(hasFixes: task.stream == .location)
        try site.give(task.rows, to: queue)
        try queue.perform { _ in }
        queue.close()
        return Figures()
    }
}

/// The bench's forty beacons at random times, and a receiver that drifts.
///
/// Signal strength varies by some dB, readings and position drift. The sensors' noise compresses
/// worst.
struct Site {
    private let cycle: [Sighting]
    private let hasFixes: Bool
    private var random = SeededRandom(seed: 7)
    private(set) var milliseconds = 0.0
    private var next = 0.0
    private var place = (latitude: 47.0, longitude: 8.0)

    init(hasFixes: Bool) throws {
        cycle = try Workload.sightings()
        self.hasFixes = hasFixes
    }

    /// The time of the last sighting.
    var now: Stamp { Workload.start.advanced(by: .milliseconds(Int64(milliseconds))) }

    /// Gives a queue so many sightings, and the fixes of their time.
    mutating func give(_ count: Int, to queue: Queue) throws {
        for _ in 0..<count {
            // Exponential pauses: each beacon is heard without regard to the others.
            milliseconds += -log(1 - Double.random(in: 0..<1, using: &random)) * 100
            var sighting = cycle[Int.random(in: cycle.indices, using: &random)]
            sighting.stamp = now
            sighting.rssi = sighting.rssi.map {
                max(-100, $0 + Int.random(in: -4...4, using: &random))
            }
            while !queue.hasRoom { usleep(200) }
            queue.accept(sighting)
            guard hasFixes, milliseconds >= next else { continue }
            next += 10_000
            place.latitude += Double.random(in: -2e-5...2e-5, using: &random)
            place.longitude += Double.random(in: -2e-5...2e-5, using: &random)
            queue.accept(Self.fix(now, place.latitude, place.longitude, &random))
        }
    }

    private static func fix(
        _ stamp: Stamp,
        _ latitude: Double,
        _ longitude: Double,
        _ random: inout SeededRandom
    ) -> Fix {
        var fix = Fix(
            stamp: stamp,
            mode: .threeDimensional,
            latitude: (latitude * 1e9).rounded() / 1e9,
            longitude: (longitude * 1e9).rounded() / 1e9
        )
        fix.receiverTime = stamp.wall
        fix.altitude = 512 + Double(Int.random(in: 0...3000, using: &random)) / 1000
        fix.speed = Double(Int.random(in: 0...300, using: &random)) / 1000
        fix.course = Double(Int.random(in: 0...35_999, using: &random)) / 100
        fix.horizontalAccuracy = Double(Int.random(in: 2000...4000, using: &random)) / 1000
        fix.verticalAccuracy = Double(Int.random(in: 4000...8000, using: &random)) / 1000
        fix.satellites = Int.random(in: 6...12, using: &random)
        return fix
    }
}
