// Home Assistant's description of a device, which makes its entities appear (MQTT discovery).
import Host
import JSON
import Records

/// The names by which a gateway is known to Home Assistant.
package struct LiveDevice: Sendable, Equatable {
    /// The device's id.
    package var id: String
    /// The version of Waypost.
    package var version: String

    package init(id: String, version: String) { (self.id, self.version) = (id, version) }

    /// Identifies it in Home Assistant, also across restarts.
    var identifier: String { "waypost_\(id)" }

    /// The device's id, cut short if that is a UUID.
    private var shortID: String { id.utf8.count == 36 ? String(id.prefix(8)) : id }
    var name: String { "Waypost \(shortID)" }

    /// Returns the name of a beacon as this gateway hears it: others may hear it, too.
    func name(of beacon: String) -> String { "\(beacon) (\(shortID))" }
}

/// Writes one device with all its entities as one retained message (Home Assistant 2024.11).
///
/// The entities are unavailable while the gateway is not connected.
struct HomeAssistantDevice {
    /// The identifier, which is part of the topic and of each entity's id.
    let identifier: String
    private let format: LiveFormat
    private var json = JSONWriter()

    init(_ identifier: String, _ format: LiveFormat) {
        (self.identifier, self.format) = (identifier, format)
    }

    /// The topic of a device's description; Home Assistant allows letters, digits, `_` and `-`.
    static func topic(_ identifier: String, prefix: String) -> String {
        "\(prefix)/device/\(identifier.replacing(text: ".", with: "_"))/config"
    }

    /// Returns the description; `entities` adds them with the functions below.
    static func text(
        _ identifier: String,
        name: String,
        make: String?,
        model: String,
        of gateway: LiveDevice,
        _ format: LiveFormat,
        entities: (inout Self) -> Void
    ) -> [UInt8] {
        var device = Self(identifier, format)
        var json = JSONWriter()
        json.object { json in
            json.key("dev")
            json.object {
                $0.key("ids")
                $0.array { $0.value(identifier) }
                $0.field("name", name)
                if let make { $0.field("mf", make) }
                $0.field("mdl", model)
                if identifier == gateway.identifier {
                    $0.field("sw", gateway.version)
                } else {
                    $0.field("via_device", gateway.identifier)
                }
            }
            json.key("o")
            json.object {
                $0.field("name", "Waypost")
                $0.field("sw", gateway.version)
            }
            json.key("cmps")
            json.object { json in
                swap(&device.json, &json)
                entities(&device)
                swap(&device.json, &json)
            }
        }
        return json.bytes
    }

    // MARK: Entities

    /// Adds an entity; `name` is its part of the ids, `label` its name for people.
    private mutating func entity(
        _ platform: String,
        _ name: String,
        label: String?,
        isDiagnostic: Bool,
        isEnabled: Bool = true,
        isAlwaysAvailable: Bool = false,
        _ fields: (inout JSONWriter) -> Void
    ) {
        let (id, presence) = ("\(identifier)_\(name)", format.presence)
        json.key(name)
        json.object { json in
            json.field("p", platform)
            json.field("uniq_id", id)
            if let label { json.field("name", label) }
            if isDiagnostic { json.field("ent_cat", "diagnostic") }
            // A person can enable it; else each message would be a row in the history.
            if !isEnabled { json.field("en", false) }
            if !isAlwaysAvailable { json.field("avty_t", presence) }
            fields(&json)
        }
    }

    /// Adds a sensor; `template` is the value's expression.
    mutating func sensor(
        _ name: String,
        label: String?,
        topic: String,
        template: String,
        deviceClass: String? = nil,
        unit: String? = nil,
        stateClass: String? = nil,
        expiry: Int64? = nil,
        isDiagnostic: Bool = false,
        isEnabled: Bool = true,
        _ more: (inout JSONWriter) -> Void = { _ in }
    ) {
        entity(
            "sensor",
            name,
            label: label,
            isDiagnostic: isDiagnostic,
            isEnabled: isEnabled
        ) {
            $0.field("stat_t", topic)
            $0.field("val_tpl", template)
            if let deviceClass { $0.field("dev_cla", deviceClass) }
            if let unit { $0.field("unit_of_meas", unit) }
            if let stateClass { $0.field("stat_cla", stateClass) }
            if let expiry { $0.field("exp_aft", expiry) }
            more(&$0)
        }
    }

    /// Adds an entity with two states; `member` is a flag of the message.
    mutating func binarySensor(
        _ member: String,
        label: String?,
        topic: String,
        deviceClass: String?,
        isInverted: Bool = false,
        expiry: Int64? = nil,
        isDiagnostic: Bool = false
    ) {
        let (on, off) = isInverted ? ("OFF", "ON") : ("ON", "OFF")
        entity("binary_sensor", member, label: label, isDiagnostic: isDiagnostic) {
            $0.field("stat_t", topic)
            let value = "value_json.\(member)"
            $0.field(
                "val_tpl",
                "{% if \(value) is defined %}{{ none if \(value) is none else "
                    + "'\(on)' if \(value) else '\(off)' }}{% endif %}"
            )
            if let deviceClass { $0.field("dev_cla", deviceClass) }
            if let expiry { $0.field("exp_aft", expiry) }
        }
    }

    /// Adds the entity of one quantity of a beacon.
    mutating func quantity(_ key: LiveReadingKey, topic: String, expiry: Int64) {
        let (quantity, member) = (LiveQuantity(key.quantity), LiveFormat.member(key))
        let value = "value_json.\(member)"
        switch quantity.entity {
        case .sensor(let deviceClass, let unit, let stateClass):
            sensor(
                member,
                label: quantity.label(key.ordinal),
                topic: topic,
                // An empty state leaves a number as it is.
                template: "{{ \(value) if \(value) is defined }}",
                deviceClass: deviceClass,
                unit: unit,
                stateClass: stateClass,
                expiry: expiry,
                isDiagnostic: quantity.isDiagnostic,
                isEnabled: quantity.isEnabled
            )
        case .binary(let deviceClass, let isInverted):
            binarySensor(
                member,
                label: quantity.label(key.ordinal),
                topic: topic,
                deviceClass: deviceClass,
                isInverted: isInverted,
                expiry: expiry,
                isDiagnostic: quantity.isDiagnostic
            )
        case .text:
            sensor(
                member,
                label: quantity.label(key.ordinal),
                topic: topic,
                template: "{{ \(value) if \(value) is defined else this.state }}",
                expiry: expiry,
                isDiagnostic: true
            )
        case .event(let events):
            entity("event", member, label: quantity.label(key.ordinal), isDiagnostic: false) {
                $0.field("stat_t", topic)
                $0.key("evt_typ")
                // "none" says that another button of the device was pressed.
                let known = events.filter { $0 != "none" }
                $0.array { array in for event in known { array.value(event) } }
                let names = known.map { "'\($0)'" }.joined(separator: ",")
                $0.field(
                    "val_tpl",
                    "{% if \(value) in [\(names)] %}{{ {'event_type': \(value)} | tojson }}{% endif %}"
                )
            }
        }
    }

    /// Adds the connection to the broker, the only entity that is available without one.
    mutating func connection() {
        let topic = format.presence
        entity(
            "binary_sensor",
            "connection",
            label: "Connection",
            isDiagnostic: true,
            isAlwaysAvailable: true
        ) {
            $0.field("stat_t", topic)
            $0.field("pl_on", "online")
            $0.field("pl_off", "offline")
            $0.field("dev_cla", "connectivity")
        }
    }

    /// Adds the gateway's place on the map.
    mutating func position() {
        let topic = format.location
        let accuracy = "value_json.horizontal_accuracy | default(0)"
        entity("device_tracker", "position", label: "Position", isDiagnostic: false) {
            $0.field("json_attr_t", topic)
            $0.field(
                "json_attr_tpl",
                "{{ dict(value_json, gps_accuracy = \(accuracy)) | tojson }}"
            )
            $0.field("src_type", "gps")
        }
    }
}

extension LiveQuantity {
    /// The entity's name for people; the second reading of a quantity has a 2 behind it.
    fileprivate func label(_ ordinal: UInt8) -> String? {
        guard ordinal > 0 else { return label }
        var deviceClass: String?
        switch entity {
        case .sensor(let found, _, _), .binary(let found, _): deviceClass = found
        case .text, .event: break
        }
        return "\(label ?? Self.words(deviceClass ?? member)) \(Int(ordinal) + 1)"
    }
}
