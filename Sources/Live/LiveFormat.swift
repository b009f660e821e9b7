// Writes messages as JSON: beacons as Theengs does, everything else as it is uploaded.
package import Host
import JSON
package import Records

/// The topics and texts of the messages of one gateway.
package struct LiveFormat: Sendable {
    /// The start of every topic.
    package var topic: String
    /// Returns the right time of a record, as far as known.
    package var date: @Sendable (Stamp) -> Moment

    package init(topic: String, date: @escaping @Sendable (Stamp) -> Moment) {
        (self.topic, self.date) = (topic, date)
    }

    package static let (online, offline) = (Array("online".utf8), Array("offline".utf8))

    /// Whether the gateway is connected: retained, and the last will.
    package var presence: String { "\(topic)/LWT" }
    package var location: String { "\(topic)/location" }
    package var health: String { "\(topic)/health" }

    package func beacon(_ key: LiveBeaconKey) -> String { "\(topic)/BTtoMQTT/\(key.topicLevel)" }

    /// The topic of a user stream; its name is `[a-z0-9_]+`, and not one of the gateway's own.
    package func stream(_ name: String) -> String { "\(topic)/\(name)" }

    /// Returns the topic and text of a message, and whether the broker keeps it for later readers.
    ///
    /// The state of the gateway is kept, its position and health, and the last record of a user
    /// stream: each is newer than the one before. A beacon's value that a broker had kept would
    /// look new to whoever subscribes.
    package func message(_ message: LiveMessage) -> (topic: String, text: [UInt8], isKept: Bool) {
        switch message {
        case .beacon(let key, let beacon): (self.beacon(key), text(key, beacon), false)
        case .fix(let fix): (location, text(fix), true)
        case .health(let health): (self.health, text(health), true)
        // One with a time of its own may be older than the one before.
        case .record(let record): (stream(record.stream), text(record), record.given == nil)
        }
    }

    // MARK: Records as they are uploaded, without their id

    private func text(_ record: some PlainRecord) -> [UInt8] {
        guard case .plain(let columns) = type(of: record).kind.shape else { return [] }
        let values = zip(columns, record.values).map { column, value -> ColumnValue in
            guard case .scaled(let decimals) = column.form else { return value }
            return value.scaled(decimals).map { .integer($0) } ?? .none
        }
        var json = JSONWriter()
        RecordJSON.write(
            columns,
            values,
            id: nil,
            at: date(record.stamp),
            seen: record.stamp.wall,
            to: &json
        ) { _, stamp in date(stamp) }
        return json.bytes
    }

    private func text(_ record: UserRecord) -> [UInt8] {
        let moment = date(record.stamp)
        var json = JSONWriter()
        json.object {
            $0.field("timestamp", record.given ?? moment.wall)
            if !record.members.isEmpty { $0.raw(record.members) }
            if record.given == nil { write(moment.quality, to: &$0) }
        }
        return json.bytes
    }

    /// Writes `clock` unless the time can be trusted.
    private func write(_ quality: ClockQuality, to json: inout JSONWriter) {
        if quality != .synced { json.field("clock", quality.rawValue) }
    }

    // MARK: Beacons, as Theengs

    private func text(_ key: LiveBeaconKey, _ beacon: LiveBeacon) -> [UInt8] {
        let moment = date(beacon.stamp)
        let model = BeaconModel(key, beacon.identity, beacon.quantities)
        var json = JSONWriter()
        json.object {
            $0.field("id", model.id)
            $0.field("name", model.name)
            if let rssi = beacon.rssi { $0.field("rssi", Int64(rssi)) }
            if let brand = model.brand { $0.field("brand", brand) }
            $0.field("model", model.model)
            if let modelID = model.modelID { $0.field("model_id", modelID) }
            model.writeIdentity(beacon.identity, to: &$0)
            for (key, reading) in beacon.readings { Self.write(key, reading, to: &$0) }
            if !beacon.data.isEmpty { $0.field("data", Hex.text(beacon.data)) }
            $0.field("timestamp", moment.wall)
            write(moment.quality, to: &$0)
        }
        return json.bytes
    }

    /// The name of a quantity in the message: `tempc`, the second of an advertisement `tempc2`.
    static func member(_ key: LiveReadingKey) -> String {
        let name = LiveQuantity(key.quantity).member
        guard key.ordinal > 0 else { return name }
        let separator = name.utf8.last?.isDigit == true ? "_" : ""
        return "\(name)\(separator)\(Int(key.ordinal) + 1)"
    }

    private static func write(
        _ key: LiveReadingKey,
        _ reading: Reading?,
        to json: inout JSONWriter
    ) {
        let (quantity, name) = (LiveQuantity(key.quantity), member(key))
        let inFahrenheit = name.replacing(text: "tempc", with: "tempf")
        guard let reading else {
            // Written as null.
            json.field(name, Double.nan)
            if key.quantity == .temperature { json.field(inFahrenheit, Double.nan) }
            return
        }
        switch key.quantity.form {
        case .number:
            let value = quantity.scaled(reading.scaled)
            json.field(name, scaled: value, decimals: quantity.decimals)
            // Theengs gives every temperature in both.
            guard key.quantity == .temperature else { return }
            let fahrenheit = (Double(value) * 1.8).rounded(.toNearestOrAwayFromZero)
            guard abs(fahrenheit) < 9e15 else { return }
            json.field(inFahrenheit, scaled: Int64(fahrenheit) + 3200, decimals: 2)
        case .flag: json.field(name, reading.scaled != 0)
        case .event(let names):
            let event = UInt8(exactly: reading.scaled).flatMap { names[$0] }
            json.field(name, event ?? "event_\(reading.scaled)")
        case .text: json.field(name, String(decoding: reading.bytes, as: UTF8.self))
        case .hex: json.field(name, Hex.text(reading.bytes))
        }
    }
}

/// The names of a beacon and of its make.
struct BeaconModel: Sendable {
    /// The address with colons, or the id in the payload.
    var id: String
    /// `Ruuvi 3344`: the make and the end of the address.
    var name: String
    var brand: String?
    var model: String
    var modelID: String?

    /// `quantities`: those that it has reported, by which the models of one make differ.
    init(_ key: LiveBeaconKey, _ identity: BeaconIdentity, _ quantities: Set<Quantity>) {
        let make: (brand: String?, model: String, modelID: String?) =
            switch identity.kind {
            case .ruuvi: Self.ruuvi(quantities)
            case .iBeacon: ("GENERIC", "iBeacon", "IBEACON")
            case .altBeacon: ("GENERIC", "AltBeacon", nil)
            case .eddystoneUID, .eddystoneURL, .eddystoneTLM, .eddystoneEID:
                ("GENERIC", "Eddystone", nil)
            case .bthome: ("GENERIC", "BTHome", nil)
            case .manufacturer, .service: (nil, "Bluetooth beacon", nil)
            }
        (brand, model, modelID) = make
        let word = identity.kind == .ruuvi ? "Ruuvi" : make.model
        switch key {
        case .address(let address), .passing(let address):
            id = address.description
            name = "\(word) \(key.topicLevel.suffix(4))"
        case .id(let text):
            id = text
            // Of an iBeacon, major and minor; of others, the end of the id.
            let parts = text.split(separator: "/")
            name =
                identity.kind == .iBeacon && parts.count == 3
                ? "\(word) \(parts[1])/\(parts[2])" : "\(word) \(text.suffix(8))"
        }
    }

    /// Returns the make and model of a Ruuvi; Theengs has no id for Ruuvi Air.
    private static func ruuvi(_ known: Set<Quantity>) -> (String?, String, String?) {
        if !known.isDisjoint(with: [.co2, .pm2_5, .vocIndex, .noxIndex, .isCalibrating]) {
            return ("Ruuvi", "Ruuvi Air", nil)
        }
        if !known.isDisjoint(with: [.sequence, .movementCounter, .transmitPower]) {
            return ("Ruuvi", "RuuviTag", "RuuviTag_RAWv2")
        }
        return ("Ruuvi", "RuuviTag", known.isEmpty ? nil : "RuuviTag_RAWv1")
    }

    /// Writes an iBeacon's parts as Theengs does, and the id of any other kind that has one.
    func writeIdentity(_ identity: BeaconIdentity, to json: inout JSONWriter) {
        let parts = identity.beaconID.split(separator: "/")
        if identity.kind == .iBeacon, parts.count == 3 {
            json.field("mfid", "4c00")
            json.field("uuid", String(parts[0]).replacing(text: "-", with: ""))
            if let major = Int64(parts[1]) { json.field("major", major) }
            if let minor = Int64(parts[2]) { json.field("minor", minor) }
        } else if !identity.beaconID.isEmpty, identity.beaconID != id {
            json.field("beacon_id", identity.beaconID)
        }
        if let power = identity.txPower { json.field("txpower", Int64(power)) }
    }
}
