import Testing

@testable import MQTT

/// Packets as bytes, whole, cut and hostile.
@Suite struct MQTTReaderTests {
    private static let packets: [MQTTPacket] = [
        .connectAck(isPresent: true, code: 0),
        .publish(MQTTMessage(topic: "tele/a/SENSOR", payload: Array("{}".utf8))),
        .publish(
            MQTTMessage(
                topic: "a",
                payload: [UInt8](repeating: 7, count: 20_000),
                qos: 1,
                isRetained: true,
                isDuplicate: true,
                id: 65_535
            )
        ),
        .publishAck(id: 1),
        .subscribeAck(id: 2, grants: [0, 1, 0x80]),
        .unsubscribeAck(id: 3),
        .pingResponse,
    ]

    @Test(arguments: [1, 2, 3, 1000, 100_000])
    func packetsInPieces_areTheSame(size: Int) throws {
        var reader = MQTTReader(payloadLimit: 20_000)
        var found: [MQTTPacket] = []
        var rest = Self.packets.flatMap(\.bytes)[...]
        while !rest.isEmpty {
            reader.append(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
            while let packet = try reader.next() { found.append(packet) }
        }
        #expect(found == Self.packets)
        #expect(reader.held == 0)
    }

    /// A payload beyond the limit costs no memory and can still be acknowledged.
    @Test func longPayload_isSkipped() throws {
        var reader = MQTTReader(payloadLimit: 1000)
        let long = MQTTMessage(
            topic: "big",
            payload: [UInt8](repeating: 1, count: 5_000_000),
            qos: 1,
            id: 9
        )
        var found: [MQTTPacket] = []
        var rest = (MQTTPacket.publish(long).bytes + MQTTPacket.pingResponse.bytes)[...]
        while !rest.isEmpty {
            reader.append(Array(rest.prefix(16_384)))
            rest = rest.dropFirst(16_384)
            while let packet = try reader.next() { found.append(packet) }
            #expect(reader.held < 20_000)
        }
        let head = MQTTMessage(topic: "big", payload: [], qos: 1, id: 9, skipped: 5_000_000)
        #expect(found == [.publish(head), .pingResponse])
    }

    /// Section 3.1: protocol name and level, flags, keep alive, client id, will, user, password.
    @Test func connect_isEncoded() {
        let will = MQTTMessage(topic: "t", payload: [1, 2], qos: 1, isRetained: true)
        let connect = MQTTConnect(
            clientID: "id",
            isClean: true,
            keepAliveSeconds: 258,
            will: will,
            username: "u",
            password: [9]
        )
        // In parts: Swift 6.0.3 gives up on one long sum.
        var expected: [UInt8] = [0x10, 27, 0, 4]
        expected += "MQTT".utf8
        expected += [4, 0xEE, 1, 2, 0, 2]
        expected += "id".utf8
        expected += [0, 1, UInt8(ascii: "t"), 0, 2, 1, 2, 0, 1, UInt8(ascii: "u"), 0, 1, 9]
        #expect(MQTTPacket.connect(connect).bytes == expected)
        let plain = MQTTConnect(clientID: "", isClean: false, keepAliveSeconds: 0)
        let short: [UInt8] = [0x10, 12, 0, 4] + Array("MQTT".utf8) + [4, 0, 0, 0, 0, 0]
        #expect(MQTTPacket.connect(plain).bytes == short)
    }

    private static let hostile: [[UInt8]] = [
        [0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],  // a length of five bytes
        [0x20, 0xFF, 0xFF, 0x7F],  // CONNACK of 2 MB
        [0x20, 3, 0, 0, 0],
        [0x20, 2, 2, 0],  // flags that are reserved
        [0x00, 0],
        [0xF0, 0],
        [0x40, 2, 0, 0],  // id 0
        [0x42, 2, 0, 1],
        [0x90, 3, 0, 1, 3],  // a grant that does not exist
        [0x90, 2, 0, 1],
        [0x30, 1, 0],
        [0x30, 4, 0, 3, 0x61, 0x61],  // topic longer than the packet
        [0x30, 2, 0, 0],  // no topic
        [0x30, 4, 0, 2, 0xC3, 0x28],  // not UTF-8
        [0x30, 3, 0, 1, 0x23],  // a wildcard
        [0x30, 3, 0, 1, 0],
        [0x34, 5, 0, 1, 0x61, 0, 1],  // QoS 2
        [0x36, 5, 0, 1, 0x61, 0, 1],  // QoS 3
        [0x38, 3, 0, 1, 0x61],  // DUP with QoS 0
        [0x32, 5, 0, 1, 0x61, 0, 0],  // id 0
        [0x82, 6, 0, 1, 0, 1, 0x61, 1],  // SUBSCRIBE
        [0xD0, 1, 0],
    ]

    @Test(arguments: hostile) func hostileBytes_areAFault(bytes: [UInt8]) {
        var reader = MQTTReader(payloadLimit: 100)
        reader.append(bytes)
        #expect(throws: MQTTError.self) { try reader.next() }
    }
}
