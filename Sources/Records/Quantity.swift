// The quantities that beacons report: key, unit and rounding of each, in one table.

/// How the value of a reading is stored and written.
package enum ReadingForm: Sendable, Equatable {
    /// A number, stored as an integer count of its step, `10^-decimals`.
    case number(decimals: Int)
    /// A flag; `true` for any value but 0.
    case flag
    /// A code for one of these names; an unknown code is written `event_CODE`.
    case event([UInt8: String])
    /// UTF-8 text.
    case text
    /// Bytes, written as hex.
    case hex
}

/// A quantity that a beacon reports; the raw value is stored, so never change or reuse one.
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
    // Ruuvi Air, and BTHome where the two measure the same.
    case pm1 = 14
    case pm2_5 = 15
    case pm4 = 16
    case pm10 = 17
    case co2 = 18
    case vocIndex = 19
    case noxIndex = 20
    case illuminance = 21
    case isCalibrating = 22
    // BTHome: numbers.
    case packetID = 23
    case batteryPercent = 24
    case mass = 25
    case massPounds = 26
    case dewPoint = 27
    case count = 28
    case energy = 29
    case power = 30
    case voltage = 31
    case tvoc = 32
    case moisture = 33
    case rotation = 34
    case distance = 35
    case duration = 36
    case current = 37
    case speed = 38
    case uvIndex = 39
    case volume = 40
    case volumeFlow = 41
    case gasVolume = 42
    case waterVolume = 43
    case timestamp = 44
    case acceleration = 45
    case gyroscope = 46
    case volumeStorage = 47
    case conductivity = 48
    case direction = 49
    case precipitation = 50
    case channel = 51
    case rotationalSpeed = 52
    case lightLevel = 53
    case settingsRevision = 54
    case deviceType = 55
    // BTHome: text, bytes and events.
    case firmwareVersion = 56
    case text = 57
    case raw = 58
    case button = 59
    case dimmer = 60
    case dimmerSteps = 61
    case command = 62
    case commandArguments = 63
    // BTHome: two states; `true` is the named one.
    case isOn = 64
    case hasPower = 65
    case isOpen = 66
    case isBatteryLow = 67
    case isBatteryCharging = 68
    case carbonMonoxide = 69
    case isCold = 70
    case isConnected = 71
    case isDoorOpen = 72
    case isGarageDoorOpen = 73
    case gas = 74
    case isHot = 75
    case light = 76
    case isUnlocked = 77
    case isWet = 78
    case motion = 79
    case isMoving = 80
    case isOccupied = 81
    case isPluggedIn = 82
    case isPresent = 83
    case problem = 84
    case isRunning = 85
    case isSafe = 86
    case smoke = 87
    case sound = 88
    case tamper = 89
    case vibration = 90
    case isWindowOpen = 91
    /// The sensor's sequence number of a measurement: stored to detect repeats after a restart,
    /// never sent.
    case mark = 92

    /// The key on the wire, with its unit.
    package var key: String { Self.table[Int(rawValue)].key }

    package var form: ReadingForm { Self.table[Int(rawValue)].form }

    /// Decimals stored; 0 if it is not a number.
    package var decimals: Int {
        if case .number(let decimals) = form { decimals } else { 0 }
    }

    private typealias Row = (key: String, form: ReadingForm)

    /// The rows, indexed by raw value.
    private static let table: [Row] = {
        var rows = [Row](repeating: ("", .flag), count: 256)
        for quantity in allCases { rows[Int(quantity.rawValue)] = row(quantity) }
        return rows
    }()

    /// The one table of keys, units and rounding.
    private static func row(_ quantity: Self) -> Row {
        switch quantity {
        case .temperature: ("temperature_c", .number(decimals: 2))
        case .humidity: ("humidity_percent", .number(decimals: 2))
        case .pressure: ("pressure_pa", .number(decimals: 0))
        case .battery: ("battery_mv", .number(decimals: 0))
        case .accelerationX: ("acceleration_x_mg", .number(decimals: 0))
        case .accelerationY: ("acceleration_y_mg", .number(decimals: 0))
        case .accelerationZ: ("acceleration_z_mg", .number(decimals: 0))
        case .movementCounter: ("movement_counter", .number(decimals: 0))
        case .sequence: ("sequence", .number(decimals: 0))
        case .transmitPower: ("tx_power_dbm", .number(decimals: 0))
        case .advertisementCount: ("advertisement_count", .number(decimals: 0))
        case .uptime: ("uptime_s", .number(decimals: 1))
        case .version: ("version", .number(decimals: 0))
        case .pm1: ("pm1_ug_m3", .number(decimals: 1))
        case .pm2_5: ("pm2_5_ug_m3", .number(decimals: 1))
        case .pm4: ("pm4_ug_m3", .number(decimals: 1))
        case .pm10: ("pm10_ug_m3", .number(decimals: 1))
        case .co2: ("co2_ppm", .number(decimals: 0))
        case .vocIndex: ("voc_index", .number(decimals: 0))
        case .noxIndex: ("nox_index", .number(decimals: 0))
        case .illuminance: ("illuminance_lux", .number(decimals: 2))
        case .isCalibrating: ("calibrating", .flag)
        case .packetID: ("packet_id", .number(decimals: 0))
        case .batteryPercent: ("battery_percent", .number(decimals: 0))
        case .mass: ("mass_kg", .number(decimals: 2))
        case .massPounds: ("mass_lb", .number(decimals: 2))
        case .dewPoint: ("dew_point_c", .number(decimals: 2))
        case .count: ("count", .number(decimals: 0))
        case .energy: ("energy_kwh", .number(decimals: 3))
        case .power: ("power_w", .number(decimals: 2))
        case .voltage: ("voltage_v", .number(decimals: 3))
        case .tvoc: ("tvoc_ug_m3", .number(decimals: 0))
        case .moisture: ("moisture_percent", .number(decimals: 2))
        case .rotation: ("rotation_degrees", .number(decimals: 1))
        case .distance: ("distance_m", .number(decimals: 3))
        case .duration: ("duration_s", .number(decimals: 3))
        case .current: ("current_a", .number(decimals: 3))
        case .speed: ("speed_m_s", .number(decimals: 6))
        case .uvIndex: ("uv_index", .number(decimals: 1))
        case .volume: ("volume_l", .number(decimals: 3))
        case .volumeFlow: ("volume_flow_m3_h", .number(decimals: 3))
        case .gasVolume: ("gas_m3", .number(decimals: 3))
        case .waterVolume: ("water_l", .number(decimals: 3))
        case .timestamp: ("timestamp_unix_s", .number(decimals: 0))
        case .acceleration: ("acceleration_m_s2", .number(decimals: 6))
        case .gyroscope: ("gyroscope_degrees_s", .number(decimals: 3))
        case .volumeStorage: ("volume_storage_l", .number(decimals: 3))
        case .conductivity: ("conductivity_us_cm", .number(decimals: 0))
        case .direction: ("direction_degrees", .number(decimals: 2))
        case .precipitation: ("precipitation_mm", .number(decimals: 1))
        case .channel: ("channel", .number(decimals: 0))
        case .rotationalSpeed: ("rotational_speed_rpm", .number(decimals: 0))
        case .lightLevel: ("light_level", .number(decimals: 0))
        case .settingsRevision: ("settings_revision", .number(decimals: 0))
        case .deviceType: ("device_type_id", .number(decimals: 0))
        case .firmwareVersion: ("firmware_version", .text)
        case .text: ("text", .text)
        case .raw: ("raw", .hex)
        case .button: ("button", .event(buttonEvents))
        case .dimmer: ("dimmer", .event(dimmerEvents))
        case .dimmerSteps: ("dimmer_steps", .number(decimals: 0))
        case .command: ("command", .event(commandEvents))
        case .commandArguments: ("command_arguments", .hex)
        case .isOn: ("on", .flag)
        case .hasPower: ("power_on", .flag)
        case .isOpen: ("open", .flag)
        case .isBatteryLow: ("battery_low", .flag)
        case .isBatteryCharging: ("battery_charging", .flag)
        case .carbonMonoxide: ("carbon_monoxide", .flag)
        case .isCold: ("cold", .flag)
        case .isConnected: ("connected", .flag)
        case .isDoorOpen: ("door_open", .flag)
        case .isGarageDoorOpen: ("garage_door_open", .flag)
        case .gas: ("gas", .flag)
        case .isHot: ("hot", .flag)
        case .light: ("light", .flag)
        case .isUnlocked: ("unlocked", .flag)
        case .isWet: ("wet", .flag)
        case .motion: ("motion", .flag)
        case .isMoving: ("moving", .flag)
        case .isOccupied: ("occupied", .flag)
        case .isPluggedIn: ("plugged_in", .flag)
        case .isPresent: ("present", .flag)
        case .problem: ("problem", .flag)
        case .isRunning: ("running", .flag)
        case .isSafe: ("safe", .flag)
        case .smoke: ("smoke", .flag)
        case .sound: ("sound", .flag)
        case .tamper: ("tamper", .flag)
        case .vibration: ("vibration", .flag)
        case .isWindowOpen: ("window_open", .flag)
        case .mark: ("", .number(decimals: 0))
        }
    }

    private static let buttonEvents: [UInt8: String] = [
        0x00: "none", 0x01: "press", 0x02: "double_press", 0x03: "triple_press",
        0x04: "long_press", 0x05: "long_double_press", 0x06: "long_triple_press",
        0x80: "hold_press", 0x81: "hold_release",
    ]
    private static let dimmerEvents: [UInt8: String] = [
        0x00: "none", 0x01: "rotate_left", 0x02: "rotate_right",
    ]
    private static let commandEvents: [UInt8: String] = [
        0x00: "off", 0x01: "on", 0x02: "toggle", 0x03: "step_up", 0x04: "step_down",
    ]
}
