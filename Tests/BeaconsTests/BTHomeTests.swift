// BTHome v2 against its published examples (bthome.io/format, bthome.io/encryption), and against damage.
import Host
import Queue
import Records
import Testing

@testable import Beacons

/// Service data of BTHome, from the device information byte on.
private func service(_ hex: String) -> ArraySlice<UInt8> { bytes("D2FC" + hex)[...] }

private func readings(_ objects: String) -> [String] {
    let beacon = BTHome.decode(service("40" + objects))
    return (beacon?.telemetry.readings ?? []).map { reading in
        switch reading.quantity.form {
        case .text: "\(reading.quantity.key)=\(String(decoding: reading.bytes, as: UTF8.self))"
        case .hex: "\(reading.quantity.key)=\(hex(reading.bytes))"
        default: "\(reading.quantity.key)=\(reading.scaled)"
        }
    }
}

@Suite struct BTHomeTests {
    /// Values in the smallest step of their key: 0.01 °C, 1 Pa, 0.001 kWh.
    @Test(arguments: [
        ("0009", "packet_id=9"), ("0161", "battery_percent=97"), ("02CA09", "temperature_c=2506"),
        ("03BF13", "humidity_percent=5055"), ("04138A01", "pressure_pa=100883"),
        ("05138A14", "illuminance_lux=1346067"), ("065E1F", "mass_kg=8030"),
        ("073E1D", "mass_lb=7486"), ("08CA06", "dew_point_c=1738"), ("0960", "count=96"),
        ("0A138A14", "energy_kwh=1346067"), ("0B021B00", "power_w=6914"),
        ("0C020C", "voltage_v=3074"), ("0D120C", "pm2_5_ug_m3=30900"),
        ("0E021C", "pm10_ug_m3=71700"), ("12E204", "co2_ppm=1250"), ("133301", "tvoc_ug_m3=307"),
        ("14020C", "moisture_percent=3074"), ("2E23", "humidity_percent=3500"),
        ("2F23", "moisture_percent=3500"), ("3D0960", "count=24585"),
        ("3E2A2C0960", "count=1611213866"), ("3F020C", "rotation_degrees=3074"),
        ("400C00", "distance_m=12"), ("414E00", "distance_m=7800"),
        ("424E3400", "duration_s=13390"), ("434E34", "current_a=13390"),
        ("444E34", "speed_m_s=133900000"), ("451101", "temperature_c=2730"),
        ("4632", "uv_index=50"), ("478756", "volume_l=2215100"), ("48DC87", "volume_l=34780"),
        ("49DC87", "volume_flow_m3_h=34780"), ("4A020C", "voltage_v=307400"),
        ("4B138A14", "gas_m3=1346067"), ("4C41018A01", "gas_m3=25821505"),
        ("4D12138A14", "energy_kwh=344593170"), ("4E87562A01", "volume_l=19551879"),
        ("4F87562A01", "water_l=19551879"), ("505D396164", "timestamp_unix_s=1684093277"),
        ("518756", "acceleration_m_s2=22151000"), ("528756", "gyroscope_degrees_s=22151"),
        ("530C48656C6C6F20576F726C6421", "text=Hello World!"),
        ("540C48656C6C6F20576F726C6421", "raw=48656c6c6f20576f726c6421"),
        ("5587562A01", "volume_storage_l=19551879"), ("56E803", "conductivity_us_cm=1000"),
        ("57EA", "temperature_c=-2200"), ("58EA", "temperature_c=-770"), ("59EA", "count=-22"),
        ("5AEAEA", "count=-5398"), ("5BEA0234EA", "count=-365690134"),
        ("5C02FBFFFF", "power_w=-1278"), ("5D02EA", "current_a=-5630"),
        ("5E9F8C", "direction_degrees=35999"), ("5F7601", "precipitation_mm=374"),
        ("6005", "channel=5"), ("61AC0D", "rotational_speed_rpm=3500"),
        ("62C0BDF0FF", "speed_m_s=-1000000"), ("6340420F00", "acceleration_m_s2=1000000"),
        ("6402", "light_level=2"), ("6507", "settings_revision=7"),
        ("F00100", "device_type_id=1"), ("F100010204", "firmware_version=4.2.1.0"),
        ("F2000106", "firmware_version=6.1.0"),
    ])
    func published_examplesOfEachNumber(hex: String, reading: String) {
        #expect(readings(hex) == [reading])
    }

    @Test func flags_areOneByteEach() {
        let keys = [
            0x0F: "on", 0x10: "power_on", 0x11: "open", 0x15: "battery_low",
            0x16: "battery_charging", 0x17: "carbon_monoxide", 0x18: "cold", 0x19: "connected",
            0x1A: "door_open", 0x1B: "garage_door_open", 0x1C: "gas", 0x1D: "hot", 0x1E: "light",
            0x1F: "unlocked", 0x20: "wet", 0x21: "motion", 0x22: "moving", 0x23: "occupied",
            0x24: "plugged_in", 0x25: "present", 0x26: "problem", 0x27: "running", 0x28: "safe",
            0x29: "smoke", 0x2A: "sound", 0x2B: "tamper", 0x2C: "vibration", 0x2D: "window_open",
        ]
        for (id, key) in keys {
            #expect(
                readings(hex([UInt8(id), 0]) + hex([UInt8(id), 1])) == [key + "=0", key + "=1"]
            )
        }
    }

    @Test(arguments: [
        ("3A01", ["button=1"]), ("3A80", ["button=128"]), ("3A003A02", ["button=0", "button=2"]),
        ("3C0103", ["dimmer=1", "dimmer_steps=3"]),
        ("3B0002", ["command=2", "command_arguments="]),
        ("3B22030A0B", ["command=3", "command_arguments=0a0b"]),
    ])
    func events_giveTheirCodes(hex: String, expected: [String]) {
        #expect(readings(hex) == expected)
    }

    @Test func everyID_isKnownOrIsNot() {
        let unknown = Set(0...255).subtracting((0...255).filter { BTHomeObject.all[$0] != nil })
        #expect(unknown == Set(0x30...0x39).union(0x66...0xEF).union(0xF3...0xFF))
    }

    @Test(arguments: [
        ("02CA0903BF13", 2), ("02CA0930FF03BF13", 1), ("30FF02CA09", 0), ("02CA0903BF", 1),
        ("02CA0953", 1), ("02CA095302AA", 1), ("5300540002CA09", 1), ("3B05", 0), ("3C01", 0),
        ("F1000102", 0), ("02CA0902CA0945CA09", 3), ("", 0),
    ])
    func objects_areReadUpToWhatIsUnknownOrCutShort(hex: String, count: Int) {
        #expect(readings(hex).count == count)
    }

    @Test func data_isKeptWhereNothingCouldBeRead() {
        #expect(BTHome.decode(service("4030FF02CA09"))?.data == bytes("D2FC4030FF02CA09"))
        #expect(BTHome.decode(service("4002CA0930FF"))?.data == [])
    }

    @Test func address_isTheIDIfIncluded() {
        let beacon = BTHome.decode(service("42A5808FE6485402CA09"))
        #expect(beacon?.beaconID == "54:48:E6:8F:80:A5")
        #expect(beacon?.telemetry.byKey == ["temperature_c": 2506])
        #expect(BTHome.decode(service("4002CA09"))?.beaconID == nil)
    }

    @Test(arguments: ["", "2002CA09", "6002CA09", "42A5808FE648"])
    func otherVersionsAndHalfHeaders_areServiceData(hex: String) {
        #expect(BTHome.decode(service(hex)) == nil)
    }

    @Test func packetID_marksTheMeasurement() {
        #expect(BTHome.decode(service("44000902CA09"))?.mark == .packet(9))
        #expect(BTHome.decode(service("4402CA09"))?.mark == nil)
    }
}

@Suite struct BTHomeKeysTests {
    private static let device = BluetoothAddress(value: 0x5448_E68F_80A5)
    private static let key = bytes("231d39c1d7cc1ab1aee224cd096db932")
    /// bthome.io/encryption: 25.06 °C and 50.55 % under counter 0x33221100.
    private static let published = "41A47266C95F730011223378237214"

    private func read(
        _ hex: String,
        from sender: BluetoothAddress = device,
        _ keys: [BluetoothAddress: [UInt8]] = [device: key]
    ) throws -> (DecodedBeacon, UnreadReason?) {
        var beacon = try #require(BTHome.decode(service(hex)))
        let unread = BTHomeKeys(keys).read(&beacon, from: sender)
        return (beacon, unread)
    }

    @Test func published_example() throws {
        let (beacon, unread) = try read(Self.published)
        #expect(unread == nil)
        #expect(beacon.telemetry.byKey == ["temperature_c": 2506, "humidity_percent": 5055])
        #expect(beacon.mark == .counter(0x3322_1100))
        #expect(beacon.data == [])
    }

    @Test func oneReader_readsAgainAndAgain_alsoAfterAWrongOne() throws {
        let keys = BTHomeKeys([Self.device: Self.key])
        for _ in 0..<3 {
            for (hex, isRight) in [
                (Self.published, true), ("41A47266C95F730011223378237215", false),
            ] {
                var beacon = try #require(BTHome.decode(service(hex)))
                #expect(keys.read(&beacon, from: Self.device) == (isRight ? nil : .wrongKey))
                #expect(beacon.telemetry.isEmpty == !isRight)
            }
        }
    }

    @Test(arguments: [
        "41A47266C95F730011223378237215",  // another MIC
        "41A47266C95F730111223378237214",  // another counter
        "45A47266C95F730011223378237214",  // another information byte
        "41A57266C95F730011223378237214",  // another text
    ])
    func whatWasChanged_isNotBelieved_andStaysAsItCame(hex: String) throws {
        let (beacon, unread) = try read(hex)
        #expect(unread == .wrongKey)
        #expect(beacon.telemetry.isEmpty)
        #expect(beacon.data == bytes("D2FC" + hex))
        #expect(beacon.mark == nil)
    }

    @Test func withoutItsKey_nothingIsSaidOfADevice() throws {
        let other = BluetoothAddress(value: 1)
        for keys in [[:], [other: Self.key]] {
            let (beacon, unread) = try read(Self.published, keys)
            #expect(unread == nil)
            #expect(beacon.telemetry.isEmpty)
            #expect(beacon.data == bytes("D2FC" + Self.published))
        }
        #expect(try read(Self.published, [Self.device: bytes("00112233")]).1 == .wrongKey)
    }

    @Test func includedAddress_findsTheKey() throws {
        // Made with another implementation (cryptography's AESCCM): 02CA09, counter 7.
        let (beacon, unread) = try read(
            "43A5808FE64854" + Self.sealedWithAddress,
            from: BluetoothAddress(value: 0x4000_0000_0001)
        )
        #expect(unread == nil)
        #expect(beacon.beaconID == "54:48:E6:8F:80:A5")
        #expect(beacon.telemetry.byKey == ["temperature_c": 2506])
    }

    private static let sealedWithAddress = "51DC360700000094EE1158"

    /// A firmware newer than this program: what it sends is kept, as that of devices without a key is.
    @Test func sealedObjectsThatNobodyKnows_areKeptAsTheyCame() throws {
        // FE0102, under the counter of the published example.
        let sealed = "4158B96D00112233A9DEDA97"
        let (beacon, unread) = try read(sealed)
        #expect(unread == nil)
        #expect(beacon.telemetry.isEmpty)
        #expect(beacon.mark == .counter(0x3322_1100))
        #expect(beacon.data == bytes("D2FC" + sealed))
    }

    @Test func plainDataOfADeviceWithAKey_isNotBelieved() throws {
        let (beacon, unread) = try read("40000902CA09")
        #expect(unread == .notEncrypted)
        #expect(beacon.telemetry.isEmpty)
        #expect(beacon.mark == nil)
    }

    @Test(arguments: ["41", "4100", "4100112233782372", "43A5808FE648540011223378237214"])
    func tooShortToBeSealed_isKeptUnread(hex: String) throws {
        let (beacon, unread) = try read(hex)
        #expect(beacon.kind == .bthome)
        #expect(unread == nil)
        #expect(beacon.data == bytes("D2FC" + hex))
    }

    @Test func reasons_nameTheDevice_andNoKey() {
        for reason in [UnreadReason.wrongKey, .notEncrypted, .replayed] {
            let text = reason.text(of: Self.device)
            #expect(text.hasPrefix("54:48:E6:8F:80:A5: "))
            #expect(!text.lowercased().contains(hex(Self.key)))
        }
    }
}
