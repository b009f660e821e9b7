// Derives units from the suffixes of member names.
import Host

package enum Quantities {
    /// Suffixes and their units, the longer ones first.
    private static let units: [(end: String, unit: String)] = [
        ("_ug_m3", "µg/m³"), ("_m_s2", "m/s²"), ("_percent", "%"), ("_bytes", "B"), ("_m_s", "m/s"),
        ("_lux", "lx"), ("_ppm", "ppm"), ("_kwh", "kWh"), ("_hpa", "hPa"), ("_dbm", "dBm"),
        ("_pa", "Pa"), ("_mv", "mV"), ("_mg", "mg"), ("_db", "dB"), ("_kg", "kg"), ("_hz", "Hz"),
        ("_mm", "mm"), ("_ms", "ms"), ("_c", "°C"), ("_v", "V"), ("_a", "A"), ("_w", "W"),
        ("_l", "l"), ("_m", "m"), ("_s", "s"),
    ]

    /// The units of names without a suffix (waypost-protocol(7)).
    private static let known = [
        "altitude": "m", "horizontal_accuracy": "m", "vertical_accuracy": "m", "speed": "m/s",
        "course": "°", "rssi": "dBm", "average_db_level": "dBFS",
    ]

    /// Splits `temperature_c` into `temperature` and `°C`.
    package static func split(_ name: String) -> (words: String, unit: String) {
        let found = units.first { name.hasSuffix($0.end) && name.utf8.count > $0.end.utf8.count }
        let words = String(name.dropLast(found?.end.count ?? 0).map { $0 == "_" ? " " : $0 })
        let unit = found?.unit ?? known[name] ?? ""
        // A device may report both.
        guard words == "battery", !unit.isEmpty else { return (words, unit) }
        return (unit == "%" ? "battery charge" : "battery voltage", unit)
    }

    /// Splits a name for pages: `pressure_pa` into `pressure` and `hPa`, and the factor of its values.
    package static func shown(_ name: String) -> (words: String, unit: String, factor: Double) {
        if name == QuantityName.strength { return ("signal strength", "dBm", 1) }
        let (words, unit) = split(name)
        return unit == "Pa" ? (words, "hPa", 0.01) : (words, unit, 1)
    }

    /// Returns the place of a quantity on the page: temperature, humidity, battery, then the others.
    package static func rank(_ name: String) -> Int {
        ["temperature", "humidity", "battery"].firstIndex { name.contains(text: $0) } ?? 3
    }

    private static let counters: Set<Substring> = [
        "bytes", "count", "counter", "lost", "movement", "pending", "records", "sequence", "total",
        "uptime",
    ]

    /// Returns whether a number counts something, by a word in its name: `uptime_s`.
    package static func isCounter(_ name: String) -> Bool {
        name.split { $0 == "_" || $0 == "." }.contains { counters.contains($0) }
    }

    /// Returns a battery's number as people write it, and its charge in percent to compare it by; nil
    /// for a number of something else.
    ///
    /// Volts are taken for those of a lithium cell: empty with 2 V, full with 3 V.
    package static func battery(_ name: String, _ number: Double) -> (
        number: Double, unit: String, digits: Int, charge: Double
    )? {
        switch name {
        case "battery_percent": (number, "%", 0, number)
        case "battery_mv": (number / 1000, "V", 2, (number - 2000) / 10)
        case "battery_v", "battery_voltage_v": (number, "V", 2, (number - 2) * 100)
        default: nil
        }
    }

    /// Formats a number with its unit, with enough digits to distinguish the values of a range;
    /// none of them has decimals if all three are whole.
    package static func text(_ number: Double, _ unit: String, in range: ClosedRange<Double>)
        -> String
    {
        if unit == "B" { return Words.bytes(number) }
        let width = range.upperBound - range.lowerBound
        let isWhole =
            width >= 100
            || [number, range.lowerBound, range.upperBound].allSatisfy { $0 == $0.rounded() }
        let digits = isWhole ? 0 : width >= 10 ? 1 : width >= 0.1 ? 2 : width >= 0.01 ? 3 : 4
        var text = Words.decimal(number, digits)
        if width == 0, text.contains(".") {
            text = String(text.reversed().drop { $0 == "0" }.drop { $0 == "." }.reversed())
        }
        return unit.isEmpty ? text : "\(text) \(unit)"
    }
}
