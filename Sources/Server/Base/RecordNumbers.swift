// The numbers measured in a record; the index, the page and the read API use this one definition.

/// A quantity in a stream: a number of its records, or a beacon's.
package struct QuantityName: Hashable {
    /// "" for a number of the record itself.
    package var beacon: String
    /// The member's name; `rssi` for a beacon's signal strength.
    package var key: String

    package init(beacon: String, key: String) {
        (self.beacon, self.key) = (beacon, key)
    }

    package static let strength = "rssi"
}

package enum RecordNumbers {
    /// Bytes; names of beacons and members that are longer are left out.
    private static let longestName = 200
    /// Drawn on the map instead.
    private static let position: Set<String> = ["latitude", "longitude"]

    /// Passes on each number: signal strength and telemetry of a sighting, else the record's members.
    package static func each(in line: RecordLine, _ receive: (QuantityName, Double) throws -> Void)
        rethrows
    {
        guard let beacon = beacon(of: line), let rssi = line[QuantityName.strength],
            let strength = number(rssi, of: line)
        else { return try numbers(of: line, "", without: position, receive) }
        guard beacon.utf8.count <= longestName else { return }
        try receive(QuantityName(beacon: beacon, key: QuantityName.strength), strength)
        guard let telemetry = line["telemetry"].flatMap(line.object) else { return }
        try numbers(of: telemetry, beacon, without: [QuantityName.strength], receive)
    }

    /// The beacon of a sighting; nil if the record is none.
    package static func beacon(of line: RecordLine) -> String? {
        line.text("beacon_id") ?? line.text("address")
    }

    private static func numbers(
        of line: RecordLine,
        _ beacon: String,
        without others: Set<String>,
        _ receive: (QuantityName, Double) throws -> Void
    ) rethrows {
        for member in line.members {
            guard let key = member.name, key.utf8.count <= longestName, !others.contains(key),
                let value = number(member.value, of: line)
            else { continue }
            try receive(QuantityName(beacon: beacon, key: key), value)
        }
    }

    private static func number(_ range: Range<Int>, of line: RecordLine) -> Double? {
        line.value(range).number.flatMap { abs($0) < 1e15 ? $0 : nil }
    }
}
