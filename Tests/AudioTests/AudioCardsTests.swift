// Names that outlive a restart, from files as the kernel writes them.
import Foundation
import Host
import Support
import Testing

@testable import Audio
@testable import Configuration

@Suite struct AudioCardsTests {
    /// A folder with a USB microphone as card 2 (and HDMI as card 0), removed with it.
    private final class Machine {
        private let temporary = TemporaryFolder()
        var root: String { temporary.path }
        let usb =
            "../../devices/platform/scb/pci0000:00/0000:01:00.0/usb1/1-1/1-1.3/1-1.3:1.0/sound/card2"

        init() throws {
            try write(
                "/proc/asound/cards",
                """
                 0 [vc4hdmi0       ]: vc4-hdmi - vc4-hdmi-0
                                      vc4-hdmi-0
                 2 [Device         ]: USB-Audio - USB PnP Sound Device
                                      C-Media Electronics Inc. USB PnP Sound Device at usb-0000:01:00.0-1.3

                """
            )
            try write("/proc/asound/card0/id", "vc4hdmi0\n")
            try write("/proc/asound/card0/pcm0p/info", "")
            try write("/proc/asound/card2/id", "Device\n")
            try write("/proc/asound/card2/pcm0c/sub0/status", "closed\n")
            try write("/sys/class/sound/.keep", "")
            try link("/sys/class/sound/card0", "../../devices/platform/gpu/sound/card0")
            try link("/sys/class/sound/card2", usb)
        }

        func write(_ path: String, _ text: String) throws {
            let file = URL(fileURLWithPath: root + path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }

        func link(_ path: String, _ target: String) throws {
            try FileManager.default.createSymbolicLink(
                atPath: root + path,
                withDestinationPath: target
            )
        }
    }

    @Test(arguments: [
        ("usb-1-1.3", "hw:2,0"),
        ("plug:usb-1-1.3", "plug:'hw:2,0'"), ("plug:hw:1,0", "plug:'hw:1,0'"),
        ("plug:'hw:1,0'", "plug:'hw:1,0'"),
        ("hw:CARD=Device", "hw:CARD=Device"), ("default", "default"),
        ("plughw:1,0", "plughw:1,0"),
    ])
    func names_leadToTheCardOfNow(name: String, pcm: String) throws {
        let machine = try Machine()
        #expect(try AudioCards(root: machine.root).pcmName(of: name) == pcm)
    }

    /// On a stock Raspberry Pi it is the HDMI output.
    @Test func defaultThatDoesNotCapture_isTheOnlyCardThatDoes() throws {
        try #require(TestALSA.isReady)
        let machine = try Machine()
        let cards = AudioCards(root: machine.root)
        let pcm = try PCM(device: "default", rate: 16_000, cards: cards)
        #expect(pcm.device == "hw:CARD=Device")
        try machine.write("/proc/asound/card3/pcm0c/info", "")
        // With two of them it would be a guess.
        let error = Failure(
            "default: no such capture device; plug it in, or choose one that `waypost devices` lists"
        )
        #expect(throws: error) { _ = try PCM(device: "default", rate: 16_000, cards: cards).rate }
    }

    @Test func aPortWithoutACard_isNamed() throws {
        let machine = try Machine()
        #expect {
            try AudioCards(root: machine.root).pcmName(of: "usb-1-1.4")
        } throws: {
            "\($0)".hasPrefix("usb-1-1.4: nothing is plugged into this port; plug it in")
        }
    }

    @Test func devices_areListedWithLastingNames() throws {
        let machine = try Machine()
        let devices = AudioCards(root: machine.root).devices()
        #expect(devices.map(\.name) == ["hw:CARD=Device"])
        #expect(devices.allSatisfy { DeviceName.isAllowed($0.name) })
        #expect(devices.map(\.port) == ["usb-1-1.3"])
        #expect(devices.map(\.card) == [2])
        #expect(devices.first?.title.hasPrefix("C-Media Electronics Inc. USB PnP") == true)
    }

    @Test func twins_areNamedByTheirPorts() throws {
        let machine = try Machine()
        let line = " 3 [Device_1       ]: USB-Audio - USB PnP Sound Device\n"
        try machine.write(
            "/proc/asound/cards",
            line.replacingOccurrences(of: "3 [Device_1", with: "2 [Device  ") + "    long\n" + line
                + "    long\n"
        )
        try machine.write("/proc/asound/card3/pcm0c/info", "")
        try machine.link(
            "/sys/class/sound/card3",
            "../../devices/pci0000:00/usb1/1-1/1-1.4/1-1.4:1.0/sound/card3"
        )
        let names = AudioCards(root: machine.root).devices().map(\.name)
        #expect(names == ["usb-1-1.3", "usb-1-1.4"])
        #expect(names.allSatisfy(DeviceName.isAllowed))
    }

    /// As `arecord -L` and the folders of the system have them.
    @Test(arguments: [
        "/dev/snd/by-id/usb-Mic-00", "/dev/snd/by-path/pci-1", "front:CARD=Mic,DEV=0",
    ])
    func disallowedName_isReportedWithAlternatives(name: String) throws {
        let key = try #require(AudioSettings.keys.first { $0.path == "device" })
        var settings = AudioSettings()
        let problem = ConfigurationProblem(
            place: "w.toml:1",
            key: "audio.device",
            message: try #require(key.set(.string(name), &settings)).message,
            allowed: key.allowed
        )
        #expect(
            problem.description.hasPrefix(
                "w.toml:1: audio.device: \"\(name)\" is not an allowed device name; allowed: "
                    + "usb-PORT or hw:CARD=NAME (see `waypost devices`), or "
            )
        )
        #expect(settings.devices == ["default"])
    }

    @Test(arguments: ["hw:2,0", "plughw:CARD=Device,DEV=0", "hw:Device"])
    func whoHoldsADevice_isNamed(name: String) throws {
        let machine = try Machine()
        let cards = AudioCards(root: machine.root)
        #expect(cards.owner(of: name) == nil)
        try machine.write(
            "/proc/asound/card2/pcm0c/sub0/status",
            "state: RUNNING\nowner_pid   : 4711\ntrigger_time: 1.2\n"
        )
        #expect(cards.owner(of: name) == "process 4711")
        try machine.write("/proc/4711/comm", "pipewire\n")
        #expect(cards.owner(of: name) == "pipewire (process 4711)")
        #expect(cards.owner(of: "default") == nil)
    }
}
