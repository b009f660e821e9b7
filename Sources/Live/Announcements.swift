// The list of descriptions that Home Assistant has got, and of those that are due.
import Host
import Records

/// The descriptions of the gateway and of its beacons that Home Assistant has to get.
///
/// A description goes out when something new is reported, and again when Home Assistant or the
/// broker was restarted; few at a time, so that hundreds of beacons are no burst.
struct Announcements: Sendable {
    /// Descriptions per second.
    static let burst = 10
    /// The shortest time between two of one device: Home Assistant takes a while for one.
    static let pause = Duration.seconds(10)

    private struct Beacon: Sendable {
        var identity: BeaconIdentity
        var readings: [LiveReadingKey] = []
        var isDue = true
        var announced: BootInstant?
    }

    private let device: LiveDevice
    private let format: LiveFormat
    private let settings: LiveSettings
    private var gateway = GatewayEntities()
    private var gatewayIsDue = false
    private var beacons: [LiveBeaconKey: Beacon] = [:]
    /// When the next descriptions may go out.
    private var notBefore = BootInstant(nanoseconds: 0)

    init(_ device: LiveDevice, _ format: LiveFormat, _ settings: LiveSettings) {
        (self.device, self.format, self.settings) = (device, format, settings)
    }

    /// Makes everything due: Home Assistant or the broker was restarted.
    mutating func announceAll() {
        guard settings.homeAssistant else { return }
        gatewayIsDue = true
        for key in Array(beacons.keys) { beacons[key]?.isDue = true }
    }

    /// Takes note of a message; returns whether its beacon is not announced yet.
    mutating func saw(_ message: LiveMessage) -> Bool {
        guard settings.homeAssistant else { return false }
        switch message {
        case .beacon(let key, let beacon): return saw(key, beacon)
        case .fix: if gateway.sawPosition() { gatewayIsDue = true }
        case .health(let health): if gateway.saw(health) { gatewayIsDue = true }
        case .record(let record): if gateway.saw(record) { gatewayIsDue = true }
        }
        return false
    }

    private mutating func saw(_ key: LiveBeaconKey, _ beacon: LiveBeacon) -> Bool {
        guard key.isLasting, beacon.isEstablished || beacons[key] != nil else { return false }
        if beacons[key] == nil, beacons.count >= LiveValues.beaconLimit {
            // Those that are still heard come again.
            beacons.removeAll()
        }
        var known = beacons.removeValue(forKey: key) ?? Beacon(identity: beacon.identity)
        let new = beacon.readings.lazy.map(\.key).filter { !known.readings.contains($0) }
        if !new.isEmpty, known.readings.count < LiveBeacon.readingLimit {
            known.readings += Array(new)
            known.isDue = true
        }
        beacons[key] = known
        return known.isDue
    }

    /// When the next description is due; nil if none is.
    func due(at now: BootInstant) -> BootInstant? {
        if gatewayIsDue { return notBefore }
        let times = beacons.values.lazy.filter(\.isDue).map { beacon in
            beacon.announced.map { $0 + Self.pause } ?? now
        }
        return times.min().map { max($0, notBefore) }
    }

    /// Returns the topics and texts of the descriptions that are due now.
    mutating func take(at now: BootInstant) -> [(topic: String, text: [UInt8])] {
        guard now >= notBefore, let due = due(at: now), due <= now else { return [] }
        notBefore = now + .seconds(1)
        var texts: [(topic: String, text: [UInt8])] = []
        // The gateway first: the beacons' descriptions refer to it.
        if gatewayIsDue { texts.append(gatewayText) }
        gatewayIsDue = false
        let ready = beacons.lazy.filter { _, beacon in
            beacon.isDue && (beacon.announced.map { now - $0 >= Self.pause } ?? true)
        }
        for key in Array(ready.prefix(Self.burst).map(\.key)) {
            guard let beacon = beacons[key] else { continue }
            texts.append(text(key, beacon))
            beacons[key]?.isDue = false
            beacons[key]?.announced = now
        }
        return texts
    }

    // MARK: Texts

    private var gatewayText: (topic: String, text: [UInt8]) {
        let text = HomeAssistantDevice.text(
            device.identifier,
            name: device.name,
            make: "Waypost",
            model: "Field gateway",
            of: device,
            format
        ) { gateway.add(to: &$0, format) }
        return (topic(device.identifier), text)
    }

    private func text(_ key: LiveBeaconKey, _ beacon: Beacon) -> (topic: String, text: [UInt8]) {
        let quantities = Set(beacon.readings.map(\.quantity))
        let model = BeaconModel(key, beacon.identity, quantities)
        let identifier = "\(device.identifier)_\(key.topicLevel)"
        let topic = format.beacon(key)
        let expiry = beacon.identity.kind.expiry(settings.interval).milliseconds / 1000
        let text = HomeAssistantDevice.text(
            identifier,
            name: device.name(of: model.name),
            make: model.brand == "GENERIC" ? nil : model.brand,
            model: model.model,
            of: device,
            format
        ) {
            $0.sensor(
                "rssi",
                label: nil,
                topic: topic,
                template: "{{ value_json.rssi if value_json.rssi is defined }}",
                deviceClass: "signal_strength",
                unit: "dBm",
                stateClass: "measurement",
                expiry: expiry,
                isDiagnostic: true,
                isEnabled: false
            )
            for key in beacon.readings { $0.quantity(key, topic: topic, expiry: expiry) }
        }
        return (self.topic(identifier), text)
    }

    private func topic(_ identifier: String) -> String {
        HomeAssistantDevice.topic(identifier, prefix: settings.discoveryPrefix)
    }
}
