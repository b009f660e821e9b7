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

/// The newest values of one beacon since its last message.
package struct LiveBeacon: Sendable {
    /// More quantities of one beacon are not published.
    static let readingLimit = 24

    package var identity: BeaconIdentity
    package var rssi: Int?
    /// When it was last heard.
    package var stamp: Stamp
    package private(set) var readings: [(key: LiveReadingKey, reading: Reading)] = []
    /// Those of the last message that had any, without its events.
    private var last: [(key: LiveReadingKey, reading: Reading)] = []
    /// Undecoded payload, if there is any.
    package private(set) var data: [UInt8] = []
    /// When the oldest value in it was heard; nil if there is nothing to send.
    var pendingSince: BootInstant?
    /// When its last message was taken.
    var sent: BootInstant?

    package init(_ sighting: Sighting) {
        (identity, rssi, stamp) = (sighting.identity, sighting.rssi, sighting.stamp)
        add(sighting)
    }

    /// Adds a sighting: the newest value of each quantity stays.
    mutating func add(_ sighting: Sighting) {
        (identity, rssi, stamp) = (sighting.identity, sighting.rssi, sighting.stamp)
        data = sighting.data
        pendingSince = pendingSince ?? sighting.stamp.boot
        guard !sighting.telemetry.isEmpty else { return }
        let new = sighting.telemetry.readings
        for (place, reading) in new.enumerated() {
            let before = new[..<place].count { $0.quantity == reading.quantity }
            let key = LiveReadingKey(
                quantity: reading.quantity,
                ordinal: UInt8(clamping: before)
            )
            if let known = readings.firstIndex(where: { $0.key == key }) {
                readings[known].reading = reading
            } else if readings.count < Self.readingLimit {
                readings.append((key, reading))
            }
        }
    }

    /// Takes the values of a message back, to be sent again.
    mutating func restore(_ message: Self) {
        readings = message.states
        (data, pendingSince) = (message.data, sent)
    }

    /// Adds the last values again, for a reader that has missed them.
    mutating func renew(at now: BootInstant) {
        let missing = last.filter { value in !readings.contains { $0.key == value.key } }
        readings += missing.prefix(max(0, Self.readingLimit - readings.count))
        pendingSince = pendingSince ?? now
    }

    /// Forgets the values that were sent or are too old, except for `renew`.
    mutating func clear() {
        if !readings.isEmpty { last = states }
        (readings, data, pendingSince) = ([], [], nil)
    }

    /// The readings without the events, which happen once.
    private var states: [(key: LiveReadingKey, reading: Reading)] {
        readings.filter { if case .event = $0.key.quantity.form { false } else { true } }
    }
}
