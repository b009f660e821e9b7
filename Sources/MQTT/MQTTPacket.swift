// The packets of MQTT 3.1.1 that a client sends and receives, and their encoding.
import Host

/// A message as PUBLISH carries it (MQTT 3.1.1, section 3.3).
package struct MQTTMessage: Sendable, Equatable {
    package var topic: String
    package var payload: [UInt8]
    /// 0, or 1 for a message that is acknowledged.
    package var qos: UInt8
    /// The broker stores it for later subscribers; in a received one: it was stored, and is sent
    /// because of a new subscription.
    package var isRetained: Bool
    /// The sender may have sent it before.
    package var isDuplicate: Bool
    /// The packet id; 0 for QoS 0.
    package var id: UInt16
    /// Bytes of the payload that exceeded the reader's limit and were skipped; `payload` is empty
    /// then.
    package var skipped: Int

    package init(
        topic: String,
        payload: [UInt8],
        qos: UInt8 = 0,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        id: UInt16 = 0,
        skipped: Int = 0
    ) {
        (self.topic, self.payload, self.qos) = (topic, payload, qos)
        (self.isRetained, self.isDuplicate) = (isRetained, isDuplicate)
        (self.id, self.skipped) = (id, skipped)
    }
}

/// The first packet of a connection (MQTT 3.1.1, section 3.1).
package struct MQTTConnect: Sendable, Equatable {
    package var clientID: String
    /// The broker drops the session of this client id; false: it keeps it, also afterwards.
    package var isClean: Bool
    /// The broker ends a connection that is silent for one and a half times as long.
    package var keepAliveSeconds: UInt16
    /// The broker publishes it if the connection ends without DISCONNECT.
    package var will: MQTTMessage?
    package var username: String?
    package var password: [UInt8]?

    package init(
        clientID: String,
        isClean: Bool,
        keepAliveSeconds: UInt16 = 60,
        will: MQTTMessage? = nil,
        username: String? = nil,
        password: [UInt8]? = nil
    ) {
        (self.clientID, self.isClean, self.will) = (clientID, isClean, will)
        self.keepAliveSeconds = keepAliveSeconds
        (self.username, self.password) = (username, password)
    }
}

/// A control packet (MQTT 3.1.1, chapter 3).
enum MQTTPacket: Sendable, Equatable {
    case connect(MQTTConnect)
    case connectAck(isPresent: Bool, code: UInt8)
    case publish(MQTTMessage)
    case publishAck(id: UInt16)
    case subscribe(id: UInt16, filters: [String], qos: UInt8)
    /// The granted QoS per filter; 0x80 is a refusal.
    case subscribeAck(id: UInt16, grants: [UInt8])
    case unsubscribe(id: UInt16, filters: [String])
    case unsubscribeAck(id: UInt16)
    case pingRequest
    case pingResponse
    case disconnect

    /// The most bytes after the fixed header that its length can say (section 2.2.3).
    static let longest = 268_435_455

    /// The packet as sent.
    ///
    /// Texts must be shorter than 64 KiB, and the whole at most `longest` bytes.
    var bytes: [UInt8] {
        var writer = MQTTWriter()
        let first = write(to: &writer)
        return writer.packet(first)
    }

    /// Writes the bytes after the fixed header; returns its first byte.
    private func write(to writer: inout MQTTWriter) -> UInt8 {
        switch self {
        case .connect(let connect):
            writer.write(connect)
            return 0x10
        case .connectAck(let isPresent, let code):
            writer.bytes += [isPresent ? 1 : 0, code]
            return 0x20
        case .publish(let message):
            writer.write(text: message.topic)
            if message.qos > 0 { writer.write(message.id) }
            writer.bytes += message.payload
            return 0x30 | (message.isDuplicate ? 8 : 0) | message.qos << 1
                | (message.isRetained ? 1 : 0)
        case .publishAck(let id):
            writer.write(id)
            return 0x40
        case .subscribe(let id, let filters, let qos):
            writer.write(id)
            for filter in filters {
                writer.write(text: filter)
                writer.bytes.append(qos)
            }
            return 0x82
        case .subscribeAck(let id, let grants):
            writer.write(id)
            writer.bytes += grants
            return 0x90
        case .unsubscribe(let id, let filters):
            writer.write(id)
            for filter in filters { writer.write(text: filter) }
            return 0xA2
        case .unsubscribeAck(let id):
            writer.write(id)
            return 0xB0
        case .pingRequest: return 0xC0
        case .pingResponse: return 0xD0
        case .disconnect: return 0xE0
        }
    }
}

/// Writes the parts of a packet.
private struct MQTTWriter {
    var bytes: [UInt8] = []

    mutating func write(_ number: UInt16) {
        bytes += [UInt8(number >> 8), UInt8(number & 0xFF)]
    }

    mutating func write(data: some Collection<UInt8>) {
        write(UInt16(clamping: data.count))
        bytes += data.prefix(Int(UInt16.max))
    }

    mutating func write(text: String) { write(data: text.utf8) }

    mutating func write(_ connect: MQTTConnect) {
        write(text: "MQTT")
        let will = connect.will
        var flags: UInt8 = connect.isClean ? 0x02 : 0
        if let will { flags |= 0x04 | will.qos << 3 | (will.isRetained ? 0x20 : 0) }
        // A password needs a user name, which may be empty (section 3.1.2.9).
        if connect.username != nil || connect.password != nil { flags |= 0x80 }
        if connect.password != nil { flags |= 0x40 }
        // Protocol level 4 is version 3.1.1.
        bytes += [4, flags]
        write(connect.keepAliveSeconds)
        write(text: connect.clientID)
        if let will {
            write(text: will.topic)
            write(data: will.payload)
        }
        if flags & 0x80 != 0 { write(text: connect.username ?? "") }
        if let password = connect.password { write(data: password) }
    }

    /// Returns the whole packet: the first byte, the length of the rest in base 128, the rest.
    func packet(_ first: UInt8) -> [UInt8] {
        mustHold(bytes.count <= MQTTPacket.longest, "a packet's length fits into four bytes")
        var header = [first]
        var rest = bytes.count
        repeat {
            header.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return header + bytes
    }
}
