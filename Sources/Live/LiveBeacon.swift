// The newest values of one beacon, and the key by which it is published.
package import Host
package import Records

/// Identifies a beacon for messages and topics: its address if that stays the same, else its id.
package enum LiveBeaconKey: Hashable, Sendable {
    case address(BluetoothAddress)
    /// The id in the payload of a beacon whose address changes.
    case id(String)
    /// An address that changes, of a beacon without an id: another key tomorrow.
    case passing(BluetoothAddress)

    package init(_ identity: BeaconIdentity) {
        switch identity.addressType {
        case .public, .randomStatic: self = .address(identity.address)
        case .randomResolvable, .randomNonResolvable:
            // An ephemeral id changes like the address.
            let hasID = !identity.beaconID.isEmpty && identity.kind != .eddystoneEID
            self = hasID ? .id(identity.beaconID) : .passing(identity.address)
        }
    }

    /// Whether the same beacon has the same key next week.
    var isLasting: Bool { if case .passing = self { false } else { true } }

    /// Its level of a topic, and its part of ids: letters, digits and `-`.
    ///
    /// The address without colons, as in Theengs; or the id, each other character replaced by `-`
    /// and cut to 64 bytes.
    package var topicLevel: String {
        switch self {
        case .address(let address), .passing(let address):
            address.description.replacing(text: ":", with: "")
        case .id(let id):
            String(
                decoding: id.utf8.prefix(64).map {
                    $0.isDigit || $0.isLetter ? $0 : UInt8(ascii: "-")
                },
                as: UTF8.self
            )
        }
    }
}

/// One quantity of a beacon; the second reading of a quantity in an advertisement is another one.
package struct LiveReadingKey: Hashable, Sendable {
    package var quantity: Quantity
    /// 0 for the first of an advertisement.
    package var ordinal: UInt8
}

/// A reading with its key; nil: the sensor no longer measures it.
package typealias LiveReading = (key: LiveReadingKey, reading: Reading?)

/// The newest values of one beacon, and those of them that are not published yet.
package struct LiveBeacon: Sendable {
    /// More quantities of one beacon are not published.
    static let readingLimit = 24
    /// Changes that wait; the oldest of more is dropped.
    static let changeLimit = 16
    /// More sightings say nothing more about how often a beacon is heard.
    private static let sightingLimit = 8

    private struct Value: Sendable {
        var key: LiveReadingKey
        var reading: Reading
        var measured: BootInstant
        var isPending = true
    }

    package private(set) var identity: BeaconIdentity
    package private(set) var rssi: Int?
    /// When it was last heard.
    package private(set) var stamp: Stamp
    /// The readings of a message that was taken.
    package private(set) var readings: [LiveReading] = []
    /// Undecoded payload, if there is any.
    package private(set) var data: [UInt8] = []
    /// The newest reading of each quantity, except for events.
    private var values: [Value] = []
    /// The events and changed flags of one sighting each, oldest first.
    ///
    /// Each gets a message of its own, at once: a newer one does not replace it.
    private var changes: [[LiveReading]] = []
    /// When the oldest value that is not published was heard; nil if there is none.
    private(set) var pendingSince: BootInstant?
    /// When its last message was taken.
    var sent: BootInstant?
    /// Up to `sightingLimit`, and when the last two were.
    private var sightings = 0
    private var recent: [BootInstant] = []
    /// It was heard often enough to become a device in Home Assistant.
    private(set) var isEstablished: Bool

    /// `isEstablished`: a filter names it.
    init(_ sighting: Sighting, isEstablished: Bool = false) {
        (identity, rssi, stamp) = (sighting.identity, sighting.rssi, sighting.stamp)
        self.isEstablished = isEstablished
        _ = add(sighting)
    }

    /// The quantities that it has reported so far, except for events.
    var quantities: Set<Quantity> { Set(values.map(\.key.quantity)) }

    // MARK: In

    /// Adds a sighting; returns how many changes were dropped because too many wait.
    mutating func add(_ sighting: Sighting) -> Int {
        count(sighting.stamp.boot)
        (identity, rssi, stamp) = (sighting.identity, sighting.rssi, sighting.stamp)
        data = sighting.data
        pendingSince = pendingSince ?? sighting.stamp.boot
        let new = sighting.telemetry.readings
        var change: [LiveReading] = []
        for (index, reading) in new.enumerated() {
            let before = new[..<index].count { $0.quantity == reading.quantity }
            let ordinal = UInt8(clamping: before)
            let key = LiveReadingKey(quantity: reading.quantity, ordinal: ordinal)
            if add(reading, key) { change.append((key, reading)) }
        }
        guard !change.isEmpty else { return 0 }
        changes.append(change)
        guard changes.count > Self.changeLimit else { return 0 }
        changes.removeFirst()
        return 1
    }

    /// Adds a reading; returns whether it has to be published at once, by itself.
    private mutating func add(_ reading: Reading, _ key: LiveReadingKey) -> Bool {
        let index = values.firstIndex { $0.key == key }
        if case .event(let names) = key.quantity.form,
            UInt8(exactly: reading.scaled).flatMap({ names[$0] }) != "none"
        {
            if let index { values.remove(at: index) }
            return true
        }
        var value = Value(key: key, reading: reading, measured: stamp.boot)
        guard let index else {
            if values.count < Self.readingLimit { values.append(value) }
            return false
        }
        let isChange = key.quantity.form == .flag && values[index].reading != reading
        value.isPending = !isChange
        values[index] = value
        return isChange
    }

    /// Counts a sighting; the third within a minute establishes the beacon.
    private mutating func count(_ now: BootInstant) {
        sightings = min(sightings + 1, Self.sightingLimit)
        if recent.count == 2, now - recent[0] <= .seconds(60) { isEstablished = true }
        recent = recent.suffix(1) + [now]
    }

    /// How often it is heard: its sightings, halved for each five minutes of silence.
    func weight(at now: BootInstant) -> Int {
        sightings >> max(0, Int((now - stamp.boot) / .seconds(300)))
    }

    // MARK: Out

    /// When its next message is due; nil if there is nothing to publish.
    func due(_ interval: Duration, at now: BootInstant) -> BootInstant? {
        guard pendingSince != nil else { return nil }
        return changes.isEmpty ? sent.map { max(now, $0 + interval) } ?? now : now
    }

    /// Returns its messages; values that were not measured for `expiry` are nil in them.
    mutating func take(at now: BootInstant, expiry: Duration) -> [Self] {
        let own = values.lazy.filter { $0.isPending || now - $0.measured >= expiry }
            .map { (key: $0.key, reading: now - $0.measured >= expiry ? nil : $0.reading) }
        let first = changes.first ?? []
        var messages = [self]
        messages[0].readings =
            own.filter { value in !first.contains { $0.key == value.key } } + first
        for change in changes.dropFirst() {
            var message = self
            (message.readings, message.data) = (change, [])
            messages.append(message)
        }
        clear()
        sent = now
        return messages
    }

    /// Makes the last values due again, for a reader that has missed them.
    mutating func renew(at now: BootInstant) {
        for index in values.indices { values[index].isPending = true }
        pendingSince = pendingSince ?? now
    }

    /// Forgets what waits, except for `renew`; returns how many messages that were.
    @discardableResult mutating func clear() -> Int {
        defer { (data, changes, pendingSince) = ([], [], nil) }
        for index in values.indices { values[index].isPending = false }
        return max(1, changes.count)
    }
}

extension BeaconKind {
    /// How long a value counts without being measured again, at this interval between messages.
    ///
    /// Sensors with BTHome may sleep for long.
    func expiry(_ interval: Duration) -> Duration {
        max(.seconds(self == .bthome ? 3600 : 900), interval * 3)
    }
}
