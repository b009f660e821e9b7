import Records
import Support
import Testing

@testable import Proxy

@Suite struct MessageTests {
    @Test func writer_isReadBack() throws {
        var writer = ProtobufWriter()
        writer.add(1, 0)
        writer.add(2, 300)
        writer.add(3, signed: -59)
        writer.add(4, "text")
        writer.add(5, message: [])
        writer.add(600, UInt64.max)
        var reader = ProtobufReader(writer.bytes[...])
        var fields: [(UInt64, ProtobufReader.Value)] = []
        while let field = try reader.next() { fields.append(field) }
        #expect(fields.map(\.0) == [2, 3, 4, 5, 600])
        #expect(
            fields.map(\.1) == [
                .number(300), .number(117), .bytes(Array("text".utf8)[...]), .bytes([]),
                .number(.max),
            ]
        )
    }

    @Test(arguments: [
        [8], [8, 128], [10, 5, 1], [0, 1], [11, 1], [12], [9, 1, 2], [13, 1],
        [UInt8](repeating: 255, count: 11),
        [10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
    ])
    func malformedMessage_isRefused(bytes: [UInt8]) {
        #expect(throws: ProtobufReader.MalformedError.self) {
            var reader = ProtobufReader(bytes[...])
            while try reader.next() != nil {}
        }
    }

    /// The address must not change, or Home Assistant finds another device.
    @Test func identity_followsFromTheDeviceID() {
        let one = ProxyIdentity(name: nil, area: nil, deviceID: "a", version: "1")
        let again = ProxyIdentity(name: nil, area: nil, deviceID: "a", version: "2")
        let other = ProxyIdentity(name: "roof", area: "Roof", deviceID: "b", version: "1")
        #expect(one.macAddress == again.macAddress)
        #expect(one.macAddress != other.macAddress)
        #expect(one.macAddress.value >> 40 & 3 == 2)
        #expect(one.name == "waypost-\(one.macDigits.suffix(6))")
        #expect(one.area == one.name)
        #expect([other.name, other.area] == ["roof", "Roof"])
    }

    @Test func tap_dropsTheOldest_atItsLimits() throws {
        let tap = try AdvertisementTap()
        func pass(_ count: Int, size: Int) {
            for number in 0..<count {
                tap.pass(
                    RawAdvertisement(
                        address: BluetoothAddress(value: UInt64(number)),
                        isRandomAddress: false,
                        rssi: nil,
                        data: [UInt8](repeating: 0, count: size)
                    )
                )
            }
        }
        pass(1, size: 1)
        #expect(tap.end == 0)
        tap.set(open: true)
        pass(AdvertisementTap.limit + 10, size: 1)
        var next: UInt64 = 0
        let found = tap.read(&next, atMost: 16)
        #expect(found.lost == 10)
        #expect(found.advertisements.map(\.address.value) == Array(10..<26))
        tap.forget(before: tap.end)
        pass(1000, size: 1650)
        next = tap.end - 1000
        #expect(tap.read(&next, atMost: 0).lost == 1000 - AdvertisementTap.byteLimit / 1650)
        tap.set(open: false)
        #expect(tap.read(&next, atMost: 16).advertisements.isEmpty)
        #expect(next == tap.end)
    }
}
