// The last numbers that a beacon sent, for people.
import Host
import ServerBase
import ServerIndex

/// A beacon's battery with its trend, and its other numbers.
struct BeaconNumbers {
    /// `2.81 V, −0.04 in 7 days`; nil if it reports none.
    private(set) var battery: String?
    /// `temperature 21.5 °C`; the usual quantities come first, and counters are left out.
    let others: [String]

    init(_ heard: HeardBeacon, _ reader: FleetReader) throws {
        let numbers = try reader.numbers(of: heard)
        let strength = numbers.filter { $0.key == QuantityName.strength }
        let measured = numbers.filter {
            $0.key != QuantityName.strength && !Quantities.isCounter($0.key)
                && Quantities.battery($0.key, $0.value) == nil
        }.sorted { (Quantities.rank($0.key), $0.key) < (Quantities.rank($1.key), $1.key) }
        others = (measured + strength).map { key, value in
            let (words, unit, factor) = Quantities.shown(key)
            let number = value * factor
            return "\(words) \(Quantities.text(number, unit, in: number...number))"
        }
        battery = try numbers.firstResult { key, value in
            guard let now = Quantities.battery(key, value) else { return nil }
            let text = "\(Words.decimal(now.number, now.digits)) \(now.unit)"
            return try text + Self.trend(heard, key, now.number, now.digits, reader)
        }
    }

    private static func trend(
        _ heard: HeardBeacon,
        _ key: String,
        _ number: Double,
        _ digits: Int,
        _ reader: FleetReader
    ) throws -> String {
        guard let (day, value) = try reader.before(heard, key),
            let before = Quantities.battery(key, value)
        else { return "" }
        let days = (heard.day.start - day.start) / Day.milliseconds
        let change = Words.decimal(abs(number - before.number), digits)
        let sign = Double(change) == 0 ? "±" : number < before.number ? "−" : "+"
        return ", \(sign)\(change) in \(Words.count(days, "day", "days"))"
    }
}
