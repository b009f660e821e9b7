// Keys that name something: capture devices, fields of the site, beacons' keys.
import Audio
import Beacons
import Configuration
import Host
import Records
import Testing

import Daemon
import Setup

@Suite struct ConfigurationNameTests {
    /// libasound runs commands and writes files named in a device name, which a card or a stick may
    /// set.
    @Test(arguments: [
        "file:FILE='|touch /tmp/x',FORMAT=raw", "default, file:'|id',raw", "tee:default,/tmp/x,raw",
        "plug:file:'|id',raw", "plug:'tee:default,/tmp/x,raw'", "plug:\"file:'|id'\"",
        "plug:SLAVE='file:x'", "hw:0,FILE='|id'", "hw:CARD=0,DEV='|id'", "hw:{", "plug:plug:hw:0",
        "{type file file '|id' slave.pcm null}", "plug:{type file file '|id'}", "hw:../../x",
        "/dev/snd/by-path/x", "dmix:0", "null:0", "hw:", "plughw:", "hw:0,0,0,0", "plug:",
        "plug:''", "usb-", "usb-1/../2", "pcm.x", "x y", "caf\u{E9}", "rate:hw:0,8000",
    ])
    func devices_thatNameAFileOrACommand_areRefused(name: String) {
        let text = name.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        let found = problems("audio.device = \"\(text)\"")
        #expect(found.count == 1)
        #expect(found.first?.contains("is not an allowed device name") == true)
    }

    @Test(arguments: [
        "default", "mic", "My_mic-2", "hw:0", "hw:0,0", "hw:Mic,1,2", "hw:CARD=Mic",
        "plughw:CARD=Mic,DEV=1",
        "dsnoop:Mic,0", "sysdefault:CARD=Mic", "usb-1-1.3", "plug:default", "plug:mic", "plug:hw:1",
        "plug:'hw:CARD=Mic,DEV=1'", "plug:usb-1-1.3",
    ])
    func devices_ofACardOrOfAsoundConf_areAllowed(name: String) throws {
        #expect(try load("audio.device = \"\(name)\"").values.audio.devices == [name])
    }

    @Test func devices_keepTheirOwnCommas() throws {
        let text = "hw:0,0 , plughw:CARD=Mic,DEV=1,plug:'hw:1,0',default,hw:CARD=b"
        #expect(
            try load("audio.device = \"\(text)\"").values.audio.devices == [
                "hw:0,0", "plughw:CARD=Mic,DEV=1", "plug:'hw:1,0'", "default", "hw:CARD=b",
            ]
        )
    }

    @Test func siteFields_areReadByName_andRefusedOneByOne() throws {
        let loaded = try load("[site.fields]\n\"NABat|Grid Cell\" = \"12\"\nNote = \"x\"")
        #expect(loaded.values.site.fields == ["NABat|Grid Cell": "12", "Note": "x"])
        for (line, problem) in [
            ("Timestamp = \"x\"", "is reserved, or not one that GUANO allows"),
            ("\"Waypost|Clock\" = \"x\"", "is reserved, or not one that GUANO allows"),
            ("\"a: b\" = \"x\"", "is reserved, or not one that GUANO allows"),
            ("Note = \"a\\nb\"", "is not such a line"), ("Note = 5", "found an integer"),
        ] {
            #expect {
                try load("[site.fields]\n\(line)")
            } throws: {
                "\($0)".contains("w.toml:2: site.fields.") && "\($0)".contains(problem)
            }
        }
    }

    @Test func bindkeys_areReadByAddress() throws {
        let loaded = try load(
            """
            [beacons.bindkeys]
            "54:48:e6:8f:80:a5" = "231d39c1d7cc1ab1aee224cd096db932"
            "00:00:00:00:00:01" = "000102030405060708090A0B0C0D0E0F"
            """
        )
        let keys = loaded.values.beacons.bindkeys
        #expect(keys.count == 2)
        #expect(keys[BluetoothAddress(value: 1)] == Array(0...15))
        #expect(keys[BluetoothAddress(value: 0x5448_E68F_80A5)]?.first == 0x23)
    }

    @Test func bindkeys_areRefusedOneByOne_withoutShowingThem() {
        let text = """
            [beacons.bindkeys]
            "54:48:e6:8f:80:a5" = "5ecre7"
            somewhere = "231d39c1d7cc1ab1aee224cd096db932"
            "00:00:00:00:00:01" = 77
            """
        let allowed =
            "; allowed: 32 hexadecimal digits under an address, as \"A4:C1:38:00:00:01\" = \"…\""
        #expect(
            problems(text) == [
                "w.toml:2: beacons.bindkeys.\"54:48:e6:8f:80:a5\": is not a key of 16 bytes"
                    + allowed,
                "w.toml:3: beacons.bindkeys.somewhere: its name is not a Bluetooth address"
                    + allowed,
                "w.toml:4: beacons.bindkeys.\"00:00:00:00:00:01\": found an integer" + allowed,
            ]
        )
    }
}
