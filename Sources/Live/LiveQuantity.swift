// The names and units of beacons' quantities in Theengs' messages and in Home Assistant.
import Host
import Records

/// How one quantity is published: its member in the message, and its entity in Home Assistant.
///
/// Member names and units are those of Theengs' decoder where it has the quantity
/// (theengs/decoder, src/devices); others keep their key of the wire format. Device classes and
/// units are those of Home Assistant (developers.home-assistant.io, sensor and binary_sensor).
struct LiveQuantity: Sendable {
    /// The platform of its entity, and what depends on it.
    enum Entity: Sendable {
        case sensor(deviceClass: String?, unit: String?, stateClass: String)
        /// `isInverted`: Home Assistant's `on` is our false.
        case binary(deviceClass: String?, isInverted: Bool)
        case text
        case event([String])
    }

    var member: String
    var entity: Entity
    /// The entity's name; nil for the one that Home Assistant gives the device class.
    var label: String?
    /// Home Assistant lists it under "Diagnostic".
    var isDiagnostic = false
    /// False for one that hardly anyone looks at; most of these change with each message.
    var isEnabled = true
    /// The published number is the stored integer, times this, with `decimals`.
    var factor: Double?
    var decimals = 0

    /// Returns the stored integer converted to the published unit.
    func scaled(_ stored: Int64) -> Int64 {
        guard let factor else { return stored }
        let value = (Double(stored) * factor).rounded(.toNearestOrAwayFromZero)
        return abs(value) < 9e15 ? Int64(value) : 0
    }
}

extension LiveQuantity {
    fileprivate static func sensor(
        _ member: String,
        _ deviceClass: String?,
        _ unit: String?,
        _ stateClass: String = "measurement",
        named label: String? = nil
    ) -> Self {
        Self(
            member: member,
            entity: .sensor(deviceClass: deviceClass, unit: unit, stateClass: stateClass),
            label: label ?? (deviceClass == nil ? words(member) : nil)
        )
    }

    fileprivate static func binary(
        _ member: String,
        _ deviceClass: String?,
        isInverted: Bool = false
    ) -> Self {
        Self(
            member: member,
            entity: .binary(deviceClass: deviceClass, isInverted: isInverted),
            label: deviceClass == nil ? words(member) : nil
        )
    }

    fileprivate func scaled(by factor: Double? = nil, decimals: Int) -> Self {
        var quantity = self
        (quantity.factor, quantity.decimals) = (factor, decimals)
        return quantity
    }

    fileprivate var diagnostic: Self {
        var quantity = self
        quantity.isDiagnostic = true
        return quantity
    }

    /// Diagnostic, and not enabled before a person does that.
    fileprivate var disabled: Self {
        var quantity = diagnostic
        quantity.isEnabled = false
        return quantity
    }

    /// Returns a member's name as words: `voc_index` is "Voc index".
    static func words(_ member: String) -> String {
        let words = member.replacing(text: "_", with: " ")
        return words.prefix(1).uppercased() + words.dropFirst()
    }
}

extension LiveQuantity {
    /// The quantities by their key of the wire format, for user streams that use the same keys.
    static let byKey: [String: Quantity] = Dictionary(
        Quantity.allCases.filter { $0 != .mark }.map { ($0.key, $0) },
        uniquingKeysWith: { first, _ in first }
    )

    /// Standard gravity in m/s² per mg, times 10⁴.
    private static let gravity = 98.0665

    init(_ quantity: Quantity) {
        let decimals = quantity.decimals
        let found = Self.theengs(quantity) ?? Self.measured(quantity) ?? Self.flag(quantity)
        guard let found else {
            self = Self.plain(quantity)
            self.decimals = decimals
            return
        }
        self = found
        // Those with a unit of their own have set their decimals.
        if factor == nil, found.decimals == 0 { self.decimals = decimals }
    }

    /// The quantities that Theengs has a name for.
    private static func theengs(_ quantity: Quantity) -> Self? {
        switch quantity {
        case .temperature: .sensor("tempc", "temperature", "°C")
        case .humidity: .sensor("hum", "humidity", "%")
        case .pressure: .sensor("pres", "atmospheric_pressure", "hPa").scaled(decimals: 2)
        case .battery: .sensor("volt", "voltage", "V").scaled(decimals: 3).diagnostic
        case .batteryPercent: .sensor("batt", "battery", "%").diagnostic
        case .accelerationX: acceleration("x")
        case .accelerationY: acceleration("y")
        case .accelerationZ: acceleration("z")
        case .movementCounter: .sensor("mov", nil, nil, named: "Movements").disabled
        case .sequence: .sensor("seq", nil, nil, named: "Measurement number").disabled
        case .packetID: .sensor("packet", nil, nil, named: "Packet number").disabled
        case .transmitPower:
            .sensor("tx", "signal_strength", "dBm", named: "Transmit power").disabled
        case .moisture: .sensor("moi", "moisture", "%")
        case .illuminance: .sensor("lux", "illuminance", "lx")
        case .co2: .sensor("co2", "carbon_dioxide", "ppm")
        case .pm2_5: .sensor("pm25", "pm25", "µg/m³")
        case .pm10: .sensor("pm10", "pm10", "µg/m³")
        case .conductivity: .sensor("fer", "conductivity", "µS/cm")
        case .rotation: .sensor("rot", nil, "°", named: "Rotation")
        case .isWindowOpen: .binary("open", "window")
        default: nil
        }
    }

    private static func acceleration(_ axis: String) -> Self {
        sensor("acc\(axis)", nil, "m/s²", named: "Acceleration \(axis)")
            .scaled(by: gravity, decimals: 4).disabled
    }

    /// The other numbers that Home Assistant has a device class or a unit for.
    private static func measured(_ quantity: Quantity) -> Self? {
        let key = quantity.key
        return switch quantity {
        case .pm1: .sensor(key, "pm1", "µg/m³")
        case .pm4: .sensor(key, nil, "µg/m³", named: "PM4")
        case .tvoc: .sensor(key, "volatile_organic_compounds", "µg/m³")
        case .mass: .sensor(key, "weight", "kg")
        case .massPounds: .sensor(key, "weight", "lb")
        case .dewPoint: .sensor(key, "temperature", "°C", named: "Dew point")
        case .energy: .sensor(key, "energy", "kWh", "total_increasing")
        case .power: .sensor(key, "power", "W")
        case .voltage: .sensor(key, "voltage", "V")
        case .current: .sensor(key, "current", "A")
        case .distance: .sensor(key, "distance", "m")
        case .duration: .sensor(key, "duration", "s")
        case .uptime: .sensor(key, "duration", "s", named: "Uptime").disabled
        case .speed: .sensor(key, "speed", "m/s")
        case .volume: .sensor(key, "volume", "L", "total_increasing")
        case .volumeStorage: .sensor(key, "volume_storage", "L")
        case .volumeFlow: .sensor(key, "volume_flow_rate", "m³/h")
        case .gasVolume: .sensor(key, "gas", "m³", "total_increasing")
        case .waterVolume: .sensor(key, "water", "L", "total_increasing")
        case .precipitation: .sensor(key, "precipitation", "mm")
        case .acceleration: .sensor(key, nil, "m/s²", named: "Acceleration")
        case .gyroscope: .sensor(key, nil, "°/s", named: "Gyroscope")
        case .direction: .sensor(key, nil, "°", named: "Direction")
        case .rotationalSpeed: .sensor(key, nil, "rpm", named: "Rotational speed")
        case .advertisementCount, .version, .settingsRevision, .deviceType, .channel:
            .sensor(key, nil, nil).disabled
        default: nil
        }
    }

    private static func flag(_ quantity: Quantity) -> Self? {
        let key = quantity.key
        return switch quantity {
        case .isCalibrating: .binary(key, nil).diagnostic
        case .isOpen: .binary("opening", "opening")
        case .isDoorOpen: .binary(key, "door")
        case .isGarageDoorOpen: .binary(key, "garage_door")
        case .isBatteryLow: .binary(key, "battery").diagnostic
        case .isBatteryCharging: .binary(key, "battery_charging").diagnostic
        case .carbonMonoxide, .gas, .light, .motion, .isMoving, .problem, .smoke, .sound, .tamper,
            .vibration, .isCold, .isRunning:
            .binary(key, key)
        case .hasPower: .binary(key, "power")
        case .isConnected: .binary(key, "connectivity").diagnostic
        case .isHot: .binary(key, "heat")
        case .isUnlocked: .binary(key, "lock")
        case .isWet: .binary(key, "moisture")
        case .isOccupied: .binary(key, "occupancy")
        case .isPluggedIn: .binary(key, "plug")
        case .isPresent: .binary(key, "presence")
        // `on` is "unsafe" in Home Assistant.
        case .isSafe: .binary(key, "safety", isInverted: true)
        default: nil
        }
    }

    /// Describes a quantity without a device class by its form.
    private static func plain(_ quantity: Quantity) -> Self {
        switch quantity.form {
        case .number: sensor(quantity.key, nil, nil)
        case .flag: binary(quantity.key, nil)
        case .text, .hex: Self(member: quantity.key, entity: .text, label: words(quantity.key))
        case .event(let names):
            Self(
                member: quantity.key,
                entity: .event(names.sorted { $0.key < $1.key }.map(\.value)),
                label: words(quantity.key)
            )
        }
    }
}
