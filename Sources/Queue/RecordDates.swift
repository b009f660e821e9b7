// Resolves when the records of a database were captured.
package import Host
package import Records

/// Dates the records of one database by a clock map.
package struct RecordDates: Sendable {
    private let map: ClockMap
    /// Maps the boots of its records to those of the map; nil if they are the same.
    private let boots: [Int64: Int64]?

    init(map: ClockMap, boots: [Int64: Int64]?) {
        self.map = map
        self.boots = boots
    }

    /// Returns when a record was captured, as far as known.
    package func resolve(_ stamp: Stamp, boot: Int64) -> (wall: WallTime, quality: ClockQuality) {
        // An unknown boot has no clock entries: only the record's own stamp counts.
        map.resolve(stamp, boot: boots.map { $0[boot] ?? -1 } ?? boot)
    }
}
