// When the records of a database were captured.
package import Host
package import Records

/// What a clock map says of the records of one database.
package struct RecordDates: Sendable {
    private let map: ClockMap
    /// From the boots of its records to those of the map; nil where they are the same.
    private let boots: [Int64: Int64]?

    init(map: ClockMap, boots: [Int64: Int64]?) {
        self.map = map
        self.boots = boots
    }

    /// When a record was captured, as far as is known.
    package func resolve(_ stamp: Stamp, boot: Int64) -> (wall: WallTime, quality: ClockQuality) {
        // A boot that is not known dates nothing but what its records saw themselves.
        map.resolve(stamp, boot: boots.map { $0[boot] ?? -1 } ?? boot)
    }
}
