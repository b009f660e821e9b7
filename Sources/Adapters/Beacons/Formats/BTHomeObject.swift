// The object ids of BTHome v2 (bthome.io/format): quantity, length, sign and factor of each.
import Records

/// The encoding of one object id's data.
enum BTHomeObject {
    /// An integer of `length` bytes.
    ///
    /// The integer times `factor` is the value in steps of the quantity.
    case number(Quantity, length: Int, isSigned: Bool, factor: Int64)
    /// One byte, for an event.
    case event(Quantity)
    /// A code and the number of steps.
    case dimmer
    /// A length byte (five bits), a code and its arguments.
    case command
    /// A length byte and bytes.
    case bytes(Quantity)
    /// A version of `parts` bytes, the last part first.
    case firmware(parts: Int)

    /// All objects, indexed by object id.
    static let all: [Self?] = {
        var all = [Self?](repeating: nil, count: 256)
        for (id, object) in numbers { all[Int(id)] = object }
        for (id, quantity) in flags { all[Int(id)] = unsigned(quantity, 1) }
        all[0x3A] = .event(.button)
        all[0x3B] = .command
        all[0x3C] = .dimmer
        all[0x53] = .bytes(.text)
        all[0x54] = .bytes(.raw)
        all[0xF1] = .firmware(parts: 4)
        all[0xF2] = .firmware(parts: 3)
        return all
    }()

    private static func unsigned(_ quantity: Quantity, _ length: Int, _ factor: Int64 = 1) -> Self {
        .number(quantity, length: length, isSigned: false, factor: factor)
    }

    private static func signed(_ quantity: Quantity, _ length: Int, _ factor: Int64 = 1) -> Self {
        .number(quantity, length: length, isSigned: true, factor: factor)
    }

    /// Factors convert to the steps of `Quantity`: 0.1 °C is ten steps of 0.01 °C.
    private static let numbers: [UInt8: Self] = [
        0x00: unsigned(.packetID, 1),
        0x01: unsigned(.batteryPercent, 1),
        0x02: signed(.temperature, 2),
        0x03: unsigned(.humidity, 2),
        // 0.01 hPa is 1 Pa.
        0x04: unsigned(.pressure, 3),
        0x05: unsigned(.illuminance, 3),
        0x06: unsigned(.mass, 2),
        0x07: unsigned(.massPounds, 2),
        0x08: signed(.dewPoint, 2),
        0x09: unsigned(.count, 1),
        0x0A: unsigned(.energy, 3),
        0x0B: unsigned(.power, 3),
        0x0C: unsigned(.voltage, 2),
        0x0D: unsigned(.pm2_5, 2, 10),
        0x0E: unsigned(.pm10, 2, 10),
        0x12: unsigned(.co2, 2),
        0x13: unsigned(.tvoc, 2),
        0x14: unsigned(.moisture, 2),
        0x2E: unsigned(.humidity, 1, 100),
        0x2F: unsigned(.moisture, 1, 100),
        0x3D: unsigned(.count, 2),
        0x3E: unsigned(.count, 4),
        0x3F: signed(.rotation, 2),
        0x40: unsigned(.distance, 2),
        0x41: unsigned(.distance, 2, 100),
        0x42: unsigned(.duration, 3),
        0x43: unsigned(.current, 2),
        0x44: unsigned(.speed, 2, 10_000),
        0x45: signed(.temperature, 2, 10),
        0x46: unsigned(.uvIndex, 1),
        0x47: unsigned(.volume, 2, 100),
        0x48: unsigned(.volume, 2),
        0x49: unsigned(.volumeFlow, 2),
        0x4A: unsigned(.voltage, 2, 100),
        0x4B: unsigned(.gasVolume, 3),
        0x4C: unsigned(.gasVolume, 4),
        0x4D: unsigned(.energy, 4),
        0x4E: unsigned(.volume, 4),
        0x4F: unsigned(.waterVolume, 4),
        0x50: unsigned(.timestamp, 4),
        0x51: unsigned(.acceleration, 2, 1000),
        0x52: unsigned(.gyroscope, 2),
        0x55: unsigned(.volumeStorage, 4),
        0x56: unsigned(.conductivity, 2),
        0x57: signed(.temperature, 1, 100),
        0x58: signed(.temperature, 1, 35),
        0x59: signed(.count, 1),
        0x5A: signed(.count, 2),
        0x5B: signed(.count, 4),
        0x5C: signed(.power, 4),
        0x5D: signed(.current, 2),
        0x5E: unsigned(.direction, 2),
        0x5F: unsigned(.precipitation, 2),
        0x60: unsigned(.channel, 1),
        0x61: unsigned(.rotationalSpeed, 2),
        0x62: signed(.speed, 4),
        0x63: signed(.acceleration, 4),
        0x64: unsigned(.lightLevel, 1),
        0x65: unsigned(.settingsRevision, 1),
        0xF0: unsigned(.deviceType, 2),
    ]

    /// Binary sensors: 1 means that the named state is true.
    private static let flags: [UInt8: Quantity] = [
        0x0F: .isOn, 0x10: .hasPower, 0x11: .isOpen, 0x15: .isBatteryLow, 0x16: .isBatteryCharging,
        0x17: .carbonMonoxide, 0x18: .isCold, 0x19: .isConnected, 0x1A: .isDoorOpen,
        0x1B: .isGarageDoorOpen, 0x1C: .gas, 0x1D: .isHot, 0x1E: .light, 0x1F: .isUnlocked,
        0x20: .isWet, 0x21: .motion, 0x22: .isMoving, 0x23: .isOccupied, 0x24: .isPluggedIn,
        0x25: .isPresent, 0x26: .problem, 0x27: .isRunning, 0x28: .isSafe, 0x29: .smoke,
        0x2A: .sound, 0x2B: .tamper, 0x2C: .vibration, 0x2D: .isWindowOpen,
    ]
}
