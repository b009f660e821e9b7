// Readings that a beacon sends along: each a known quantity with its unit and its rounding.

/// A quantity a beacon may report; the raw value is stored, so it is never changed or reused.
package enum Quantity: UInt8, Sendable, CaseIterable {
    case temperature = 1
    case humidity = 2
    case pressure = 3
    case battery = 4
    case accelerationX = 5
    case accelerationY = 6
    case accelerationZ = 7
    case movementCounter = 8
    case sequence = 9
    case transmitPower = 10
    case advertisementCount = 11
    case uptime = 12
    case version = 13

    /// The key on the wire, with its unit.
    package var key: String {
        switch self {
        case .temperature: "temperature_c"
        case .humidity: "humidity_percent"
        case .pressure: "pressure_pa"
        case .battery: "battery_mv"
        case .accelerationX: "acceleration_x_mg"
        case .accelerationY: "acceleration_y_mg"
        case .accelerationZ: "acceleration_z_mg"
        case .movementCounter: "movement_counter"
        case .sequence: "sequence"
        case .transmitPower: "tx_power_dbm"
        case .advertisementCount: "advertisement_count"
        case .uptime: "uptime_s"
        case .version: "version"
        }
    }

    /// Decimals kept; this is the one table of rounding.
    package var decimals: Int {
        switch self {
        case .temperature, .humidity: 2
        case .uptime: 1
        case .pressure, .battery, .accelerationX, .accelerationY, .accelerationZ, .movementCounter,
            .sequence, .transmitPower, .advertisementCount, .version:
            0
        }
    }
}

/// The readings of one advertisement, in the order they were added, packed for storage.
package struct Telemetry: Sendable, Hashable {
    /// Per reading: one byte `Quantity`, then the scaled value as a zigzag varint.
    package private(set) var packed: [UInt8] = []

    package init() {}

    /// Reads what `packed` wrote; nil for bytes that are not that.
    package init?(packed: [UInt8]) {
        self.packed = packed
        guard Self.walk(packed, { _, _ in }) else { return nil }
    }

    package var isEmpty: Bool { packed.isEmpty }

    /// Adds a reading that is already in the quantity's smallest kept unit (`0.01` of °C, `1` mV).
    package mutating func add(_ quantity: Quantity, scaled: Int64) {
        packed.append(quantity.rawValue)
        var rest = UInt64(bitPattern: (scaled << 1) ^ (scaled >> 63))
        while rest > 0x7F {
            packed.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        packed.append(UInt8(rest))
    }

    /// Adds a reading in the quantity's unit, rounded to its decimals; what is not finite is left out.
    package mutating func add(_ quantity: Quantity, _ value: Double) {
        let scale = quantity.decimals == 2 ? 100.0 : quantity.decimals == 1 ? 10.0 : 1.0
        let scaled = (value * scale).rounded(.toNearestOrAwayFromZero)
        guard scaled.isFinite, abs(scaled) < 1e15 else { return }
        add(quantity, scaled: Int64(scaled))
    }

    /// The readings: quantity and scaled value, to be divided by ten to the power of its decimals.
    package var readings: [(quantity: Quantity, scaled: Int64)] {
        var readings: [(Quantity, Int64)] = []
        _ = Self.walk(packed) { readings.append(($0, $1)) }
        return readings
    }

    private static func walk(_ packed: [UInt8], _ each: (Quantity, Int64) -> Void) -> Bool {
        var index = 0
        while index < packed.count {
            guard let quantity = Quantity(rawValue: packed[index]) else { return false }
            index += 1
            var value: UInt64 = 0
            var shift: UInt64 = 0
            while true {
                guard index < packed.count, shift < 64 else { return false }
                let byte = packed[index]
                index += 1
                value |= UInt64(byte & 0x7F) << shift
                guard byte & 0x80 != 0 else { break }
                shift += 7
            }
            each(quantity, Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1))
        }
        return true
    }
}
