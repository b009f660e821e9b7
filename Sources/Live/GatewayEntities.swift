// The entities of the gateway itself: its health, position and the numbers of user streams.
import Host
import JSON
import Records

/// The values that the gateway has reported so far; each has an entity.
struct GatewayEntities: Sendable {
    /// More numbers of user streams get no entity.
    static let numberLimit = 64

    /// A number of a user stream.
    struct Number: Hashable, Sendable {
        var stream: String
        var member: String
    }

    private var health: Set<String> = []
    private var hasPosition = false
    private(set) var numbers: [Number] = []

    // MARK: Reported values; each function returns whether one is new

    mutating func sawPosition() -> Bool {
        defer { hasPosition = true }
        return !hasPosition
    }

    mutating func saw(_ health: DeviceHealth) -> Bool {
        let board = health.board
        let optional: [(String, Bool)] = [
            ("free_bytes", health.freeBytes != nil),
            ("database_bytes", health.databaseBytes != nil),
            ("cpu_temperature_c", board.cpuDecidegrees != nil),
            ("undervoltage", board.undervoltage != nil),
            ("load_1m", board.loadHundredths != nil),
            ("memory_available_bytes", board.availableBytes != nil),
            ("wifi_rssi_dbm", board.wifiRSSI != nil),
            ("state", true),
        ]
        let before = self.health.count
        self.health.formUnion(optional.lazy.filter(\.1).map(\.0))
        return self.health.count > before
    }

    mutating func saw(_ record: UserRecord) -> Bool {
        let text = [UInt8(ascii: "{")] + record.members + [UInt8(ascii: "}")]
        guard case .object(let members)? = try? JSONValue(text) else { return false }
        let before = numbers.count
        for (member, value) in members.sorted(by: { $0.key < $1.key }) {
            let number = Number(stream: record.stream, member: member)
            guard case .number = value, Self.isName(member), numbers.count < Self.numberLimit,
                !numbers.contains(number)
            else { continue }
            numbers.append(number)
        }
        return numbers.count > before
    }

    /// Whether a member's name can be part of ids and templates as it is.
    private static func isName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                $0.isDigit || $0.isLetter || $0 == 95
            }
    }

    // MARK: Entities

    func add(to device: inout HomeAssistantDevice, _ format: LiveFormat) {
        device.connection()
        if hasPosition { device.position() }
        if health.contains("state") { addHealth(to: &device, format.health) }
        for number in numbers { add(number, to: &device, format.stream(number.stream)) }
    }

    private func addHealth(to device: inout HomeAssistantDevice, _ topic: String) {
        device.sensor(
            "state",
            label: "State",
            topic: topic,
            template: "{{ value_json.state }}",
            deviceClass: "enum",
            isDiagnostic: true
        ) {
            $0.key("ops")
            $0.array { for state in ["healthy", "degraded", "critical"] { $0.value(state) } }
            $0.field("json_attr_t", topic)
            // The whole record would be new attributes each minute.
            $0.field("json_attr_tpl", "{{ {'reasons': value_json.reasons} | tojson }}")
        }
        for (member, label) in [("pending", "Pending records"), ("lost_24h", "Lost in 24 h")] {
            device.sensor(
                member,
                label: label,
                topic: topic,
                template: "{{ value_json.\(member).values() | sum }}",
                stateClass: "measurement",
                isDiagnostic: true
            )
        }
        for (member, label) in [
            ("oldest_pending_at", "Oldest pending record"), ("next_sync_at", "Next upload"),
        ] {
            device.sensor(
                member,
                label: label,
                topic: topic,
                template: "{{ value_json.\(member) | default(none) }}",
                deviceClass: "timestamp",
                isDiagnostic: true
            )
        }
        addFigures(to: &device, topic)
    }

    private typealias Figure = (
        member: String, label: String, deviceClass: String?, unit: String?, divisor: Int
    )

    private func addFigures(to device: inout HomeAssistantDevice, _ topic: String) {
        let figures: [Figure] = [
            ("uptime_s", "Uptime", "duration", "s", 1),
            ("free_bytes", "Free storage", "data_size", "GB", 1_000_000_000),
            ("database_bytes", "Database", "data_size", "MB", 1_000_000),
            ("cpu_temperature_c", "Processor temperature", "temperature", "°C", 1),
            ("load_1m", "Load", nil, nil, 1),
            ("memory_available_bytes", "Available memory", "data_size", "MB", 1_000_000),
            ("wifi_rssi_dbm", "Wi-Fi signal", "signal_strength", "dBm", 1),
        ]
        for figure in figures where figure.member == "uptime_s" || health.contains(figure.member) {
            let value = "value_json.\(figure.member)"
            let scaled = "(\(value) / \(figure.divisor)) | round(2)"
            let number = figure.divisor == 1 ? value : scaled
            device.sensor(
                figure.member,
                label: figure.label,
                topic: topic,
                template: "{{ \(number) if \(value) is defined else none }}",
                deviceClass: figure.deviceClass,
                unit: figure.unit,
                stateClass: "measurement",
                isDiagnostic: true
            )
        }
        guard health.contains("undervoltage") else { return }
        device.binarySensor(
            "undervoltage",
            label: "Undervoltage",
            topic: topic,
            deviceClass: "problem",
            isDiagnostic: true
        )
    }

    /// Adds a number; one with a key of the wire format gets the unit of that key.
    private func add(_ number: Number, to device: inout HomeAssistantDevice, _ topic: String) {
        var (unit, deviceClass, stateClass): (String?, String?, String) = (nil, nil, "measurement")
        let value = "value_json['\(number.member)']"
        var (expression, words) = (value, number.member)
        if let quantity = LiveQuantity.byKey[number.member] {
            let live = LiveQuantity(quantity)
            if case .sensor(let known, let its, let state) = live.entity {
                (deviceClass, unit, stateClass) = (known, its, state)
                words = (live.label ?? known ?? words).lowercased()
                let factor = live.factor(from: quantity)
                if factor != 1 { expression = "\(value) * \(factor)" }
            }
        }
        device.sensor(
            "\(number.stream)_\(number.member)",
            label: LiveQuantity.words("\(number.stream) \(words)"),
            topic: topic,
            template: "{{ \(expression) if \(value) is number }}",
            deviceClass: deviceClass,
            unit: unit,
            stateClass: stateClass
        )
    }
}

extension LiveQuantity {
    /// Returns the factor from a value in the unit of its key to the published one.
    fileprivate func factor(from quantity: Quantity) -> Double {
        var ratio = factor ?? 1
        for _ in 0..<max(0, decimals - quantity.decimals) { ratio /= 10 }
        return ratio
    }
}
