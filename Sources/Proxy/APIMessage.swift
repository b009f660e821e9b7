// The messages of ESPHome's native API that a Bluetooth proxy receives and sends.
package import Records

/// Numbers of messages (esphome/components/api/api.proto, option `id`).
enum MessageType {
    static let hello: UInt16 = 1
    static let helloAnswer: UInt16 = 2
    static let connect: UInt16 = 3
    static let connectAnswer: UInt16 = 4
    static let disconnect: UInt16 = 5
    static let disconnectAnswer: UInt16 = 6
    static let ping: UInt16 = 7
    static let pingAnswer: UInt16 = 8
    static let deviceInfo: UInt16 = 9
    static let deviceInfoAnswer: UInt16 = 10
    static let listEntities: UInt16 = 11
    static let entitiesDone: UInt16 = 19
    static let time: UInt16 = 36
    static let timeAnswer: UInt16 = 37
    static let subscribeAdvertisements: UInt16 = 66
    static let deviceRequest: UInt16 = 68
    static let deviceConnection: UInt16 = 69
    static let subscribeConnections: UInt16 = 80
    static let connectionsFree: UInt16 = 81
    static let unsubscribeAdvertisements: UInt16 = 87
    static let rawAdvertisements: UInt16 = 93
    static let setKey: UInt16 = 124
    static let setKeyAnswer: UInt16 = 125
    static let scannerState: UInt16 = 126
    static let setScannerMode: UInt16 = 127
}

/// The facts that a gateway states about itself to its clients.
package struct ProxyIdentity: Sendable, Equatable {
    /// Also its name in mDNS.
    package var name: String
    package var area: String
    /// Identifies the device to Home Assistant, which would take another one for another device.
    package var macAddress: BluetoothAddress
    package var version: String

    /// Makes what is not configured from the device's id.
    ///
    /// The address, too: those of network interfaces change when one is added or replaced.
    package init(name: String?, area: String?, deviceID: String, version: String) {
        let digest = Digest.sha256(Array("waypost proxy \(deviceID)".utf8))
        let bytes = digest.prefix(6).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        // Locally administered, and not a group address (IEEE 802).
        macAddress = BluetoothAddress(value: bytes & ~(1 << 40) | 2 << 40)
        let digits = macAddress.description.filter { $0 != ":" }.lowercased()
        self.name = name ?? "waypost-\(digits.suffix(6))"
        self.area = area ?? self.name
        self.version = version
    }

    /// The version of ESPHome whose API this is.
    static let esphomeVersion = "2025.4.0"

    /// Passive scan, raw advertisements, state and mode of the scanner.
    static let features: UInt64 = 1 | 32 | 64

    /// The address as twelve digits.
    var macDigits: String { macAddress.description.filter { $0 != ":" }.lowercased() }
}

/// The state of the scanner, as the API counts it.
package struct ScannerState: Sendable, Equatable {
    package enum Phase: UInt64, Sendable { case idle, starting, running, failed }

    package var phase: Phase
    package var isActive: Bool

    package init(_ phase: Phase, isActive: Bool) { (self.phase, self.isActive) = (phase, isActive) }
}

/// Bodies of messages.
enum APIMessage {
    static func hello(_ identity: ProxyIdentity) -> [UInt8] {
        var body = ProtobufWriter()
        // Version 1.10 has all that is used here.
        body.add(1, 1)
        body.add(2, 10)
        body.add(3, "Waypost \(identity.version)")
        body.add(4, identity.name)
        return body.bytes
    }

    /// `adapter`: the address of the Bluetooth adapter, if it is known.
    static func deviceInfo(_ identity: ProxyIdentity, adapter: BluetoothAddress?) -> [UInt8] {
        var body = ProtobufWriter()
        body.add(2, identity.name)
        body.add(3, identity.macAddress.description)
        body.add(4, ProxyIdentity.esphomeVersion)
        body.add(6, "Linux")
        // Home Assistant shows the parts before and after the point as manufacturer and model.
        body.add(8, "Waypost.Gateway")
        body.add(9, identity.version)
        body.add(12, "Waypost")
        body.add(13, identity.name)
        body.add(15, ProxyIdentity.features)
        body.add(16, identity.area)
        body.add(18, adapter?.description ?? "")
        body.add(19, 1)
        return body.bytes
    }

    static func scannerState(_ state: ScannerState) -> [UInt8] {
        var body = ProtobufWriter()
        body.add(1, state.phase.rawValue)
        body.add(2, state.isActive ? 1 : 0)
        body.add(3, state.isActive ? 1 : 0)
        return body.bytes
    }

    static func advertisements(_ advertisements: [RawAdvertisement]) -> [UInt8] {
        var body = ProtobufWriter()
        for advertisement in advertisements {
            var one = ProtobufWriter()
            one.add(1, advertisement.address.value)
            // -127 is "no RSSI" to Home Assistant; 127, as HCI has it, would be a strong signal.
            one.add(2, signed: Int32(advertisement.rssi ?? -127))
            one.add(3, advertisement.isRandomAddress ? 1 : 0)
            one.add(4, advertisement.data)
            body.add(1, message: one.bytes)
        }
        return body.bytes
    }

    /// The answer to a request for a connection to a device, which this proxy does not make; nil if
    /// the request is not a message.
    static func notConnected(_ request: ArraySlice<UInt8>) -> [UInt8]? {
        var reader = ProtobufReader(request)
        var body = ProtobufWriter()
        do throws(ProtobufReader.MalformedError) {
            while let (field, value) = try reader.next() {
                if case .number(let address) = value, field == 1 { body.add(1, address) }
            }
        } catch {
            return nil
        }
        return body.bytes
    }
}
