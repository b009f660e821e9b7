// A device's latest reports about itself: position, supply, storage, pending records.
import Host
import ServerBase

/// Values found by member names, in any stream (waypost-receiver(1) lists them).
package struct Vitals {
    package struct Reading {
        package var text: String
        package var time: Int64
        /// True if a person has to act.
        var isLow = false
    }

    package private(set) var place: Track.Fix?
    private(set) var supply: Reading?
    private(set) var freeStorage: Reading?
    private(set) var pending: Reading?

    /// Percent of charge below which a battery is low.
    private static let lowCharge = 20.0

    package init(_ latest: [String: (time: Int64, line: String)]) {
        // Newest last: if two streams report the same value, the newer counts.
        for (_, record) in latest.sorted(by: { ($0.value.time, $0.key) < ($1.value.time, $1.key) })
        {
            receive(FlatRecord(record.line), at: record.time)
        }
    }

    private mutating func receive(_ record: FlatRecord, at time: Int64) {
        if let latitude = record.number("latitude"), let longitude = record.number("longitude"),
            abs(latitude) <= 90, abs(longitude) <= 180
        {
            place = Track.Fix(time: time, latitude: latitude, longitude: longitude)
        }
        // Values with `rssi` are a beacon's, not the device's.
        guard record.number("rssi") == nil else { return }
        if let text = Self.supply(record) {
            let isLow = record.number("battery_percent").map { $0 < Self.lowCharge } ?? false
            let said = record.flag("battery_low") ?? false
            supply = Reading(text: text, time: time, isLow: isLow || said)
        }
        if let free = Self.first(["storage_free_bytes", "disk_free_bytes", "free_bytes"], record) {
            let room = record.number("room_days").map { days in
                days < 2
                    ? ", room for \(Words.decimal(max(0, days) * 24, 0)) h"
                    : ", room for \(Words.decimal(min(days, 1e6), 0)) days"
            }
            freeStorage = Reading(text: "\(Words.bytes(free)) free\(room ?? "")", time: time)
        }
        if let count = Self.first(["pending", "pending_records"], record), count >= 0, count < 1e15
        {
            pending = Reading(text: Words.count(Int64(count)), time: time)
        }
    }

    /// Formats `87 %, 3.91 V`; nil if nothing is reported.
    private static func supply(_ record: FlatRecord) -> String? {
        var parts: [String] = []
        if let percent = record.number("battery_percent") {
            parts.append("\(Words.decimal(percent, 0)) %")
        }
        let volts =
            first(["battery_v", "battery_voltage_v", "supply_v", "voltage_v"], record)
            ?? first(["battery_mv", "supply_mv"], record).map { $0 / 1000 }
        if let volts { parts.append("\(Words.decimal(volts, 2)) V") }
        if record.flag("battery_low") == true { parts.append("battery low") }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    private static func first(_ names: [String], _ record: FlatRecord) -> Double? {
        names.firstResult(record.number)
    }
}
