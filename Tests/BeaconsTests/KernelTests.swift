// Messages of the kernel's sockets, byte for byte: adapters, users, management, rfkill.
import CBlueZ
import Glibc
import Host
import Support
import Testing

@testable import Beacons

@Suite struct KernelTests {
    private let stop: StopSignal

    init() throws { stop = try StopSignal() }

    /// hci_si_event() of Linux 6.1: event 0xFD, type 1, then what happened and to which adapter.
    @Test(
        arguments: [
            ("04FD06 0100 0100 0000", AdapterChange(.added, 0)),
            ("04FD06 0100 0200 0100", AdapterChange(.removed, 1)),
            ("04FD06 0100 0300 0000", AdapterChange(.up, 0)),
            ("04FD06 0100 0400 0000", AdapterChange(.down, 0)),
            ("04FD06 0100 0500 0000", nil), ("04FD06 0200 0100 0000", nil),
            ("04FD06 0100 0100 00", nil), ("043E06 0100 0100 0000", nil), ("", nil),
        ] as [(String, AdapterChange?)]
    )
    func adapterChange(packet: String, expected: AdapterChange?) {
        #expect(AdapterChange(bytes(packet)[...]) == expected)
    }

    @Test func missingAdapter_isReported_withThosePresent() {
        #expect("\(NoAdapterError(name: "hci0"))" == "hci0: no such Bluetooth adapter; plug it in")
        let others = NoAdapterError(name: "hci0", others: ["hci1", "hci2"])
        #expect(
            "\(others)"
                == "hci0: no such Bluetooth adapter; plug it in, or set beacons.source to one that is there: hci1, hci2"
        )
    }

    @Test func watch_givesAllThatHappened_inOrder() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let watch = AdapterMonitor(owning: pair.near)
        #expect(watch.changes() == [])
        pair.write(bytes("04FD06 0100 0100 0000"))
        pair.write(bytes("0410 01 42"))
        pair.write(bytes("04FD06 0100 0300 0000"))
        #expect(watch.changes() == [AdapterChange(.added, 0), AdapterChange(.up, 0)])
        #expect(watch.changes() == [])
    }

    /// create_monitor_ctrl_open() of Linux 6.1: bluetoothd on the management channel.
    private let daemon = bytes(
        "0E00 FFFF 1E00 07000000 0200 011600 01000000 10 626C7565746F6F74686400000000000000"
    )

    @Test func users_areReadFromTheMonitor() {
        #expect(HCIUser(daemon[...]) == HCIUser(.management, "bluetoothd"))
        #expect(HCIUser(daemon[...])?.isBluetoothDaemon == true)
        let raw =
            bytes("0E00 0000 1E00 08000000 0000 021600 00000000 10") + bytes("68636974 6F6F6C")
        #expect(HCIUser((raw + [UInt8](repeating: 0, count: 9))[...]) == HCIUser(.raw, "hcitool"))
        #expect(HCIUser(.raw, "bluetoothd").isBluetoothDaemon == false)
        // A close, an unknown kind, a note, a packet cut short at every place.
        #expect(HCIUser(bytes("0F00 FFFF 0400 07000000")[...]) == nil)
        #expect(HCIUser(bytes("0C00 FFFF 0600 4C696E757800")[...]) == nil)
        for count in 0..<daemon.count - 1 { #expect(HCIUser(daemon.prefix(count)) == nil) }
    }

    @Test func users_areTakenFromAllThatTheMonitorBeginsWith() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        pair.write(bytes("0C00 FFFF 0600 4C696E757800"))
        pair.write(daemon)
        let near = Descriptor(owning: pair.near)
        #expect(HCIUser.all(on: near.number) == [HCIUser(.management, "bluetoothd")])
    }

    // MARK: Management

    @Test func management_commandsAreLaidOutAsTheProtocolSays() {
        let pattern = BluetoothManagement.Pattern(type: 0x16, value: [0xAA, 0xFE])
        #expect(pattern.bytes == [0x16, 0, 2, 0xAA, 0xFE] + [UInt8](repeating: 0, count: 29))
        let add = BluetoothManagement.addMonitor([pattern]).packet(for: 1)
        #expect(add == bytes("5200 0100 2300 01") + pattern.bytes)
        #expect(
            BluetoothManagement.removeMonitor(0x0102).packet(for: 0) == bytes("5300 0000 0200 0201")
        )
        // The kernel takes at most 16 patterns in one monitor.
        #expect(BluetoothManagement.patterns(unknown: true).count <= 16)
        #expect(BluetoothManagement.patterns(unknown: false).allSatisfy { $0.bytes.count == 34 })
    }

    @Test func management_answersAreRead_whateverTheirLength() throws {
        let complete = try #require(
            BluetoothManagement.Answer(bytes("0100 0000 0500 5200 00 0700")[...])
        )
        #expect(complete.opcode == 0x52 && complete.status == 0 && complete.values == [7, 0])
        let status = try #require(BluetoothManagement.Answer(bytes("0200 0300 0300 5200 0A")[...]))
        #expect(status.adapter == 3 && status.status == 0x0A && status.values == [])
        for text in [
            "", "0100", "0100 0000 0500 5200 00 07", "0100 0000 0200 5200", "1200 0000 0300 520000",
        ] {
            #expect(BluetoothManagement.Answer(bytes(text)[...]) == nil)
        }
        var generator = SeededRandom(seed: 3)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...40, using: &generator)
            let noise = generator.bytes(count)
            _ = BluetoothManagement.Answer(noise[...])
            _ = HCIUser(noise[...])
            _ = AdapterChange(noise[...])
            _ = RFKillSwitch(noise[...])
            _ = HCI.Answer(noise[...])
        }
    }

    @Test func management_passesOverEventsAndOthersAnswers() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let socket = ManagementSocket(owning: pair.near, adapter: 0)
        let thread = Mailbox<String>(limit: 1)
        let far = dup(pair.far.number)
        let kernel = try OwnThread("kernel") {
            let far = Descriptor(owning: far)
            var entries = [PollEntry(far.number)]
            _ = wait(for: &entries, timeout: .seconds(60))
            var packet = [UInt8](repeating: 0, count: 100)
            let count = read(far.number, &packet, packet.count)
            _ = thread.post(hex(packet.prefix(max(0, count))))
            for answer in [
                "0600 0000 0400 D10A0000", "0100 0100 0300 5300 00", "0100 0000 0300 5300 00",
            ] {
                let bytes = bytes(answer)
                _ = write(far.number, bytes, bytes.count)
            }
        }
        let answer = try socket.ask(BluetoothManagement.removeMonitor(9), until: stop)
        kernel.join()
        #expect(answer.adapter == 0 && answer.opcode == 0x53 && answer.status == 0)
        var said: [String] = []
        thread.takeAll(into: &said, timeout: .zero)
        #expect(said == ["5300000002000900"])
    }

    @Test func management_withoutAnAnswer_saysForWhat() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let socket = ManagementSocket(owning: pair.near, adapter: 0)
        #expect(throws: NoAnswerError.self) {
            try socket.ask(
                BluetoothManagement.removeMonitor(9),
                until: nil,
                timeout: .milliseconds(10)
            )
        }
    }

    // MARK: rfkill

    /// index, type (2: Bluetooth), operation (0 added, 1 gone, 2 changed), soft, hard.
    private func rfkill(_ events: [String]) throws -> (Bool, sent: [UInt8]) {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let near = Descriptor(owning: pair.near)
        for event in events { pair.write(bytes(event)) }
        let result = try RFKill().unblock(on: near.number, for: "hci0", until: stop)
        return (result, pair.read())
    }

    @Test func rfkill_leavesAloneWhatIsNotBlocked_orNotBluetooth() throws {
        let (changed, sent) = try rfkill([
            "00000000 01 00 01 00", "01000000 02 00 00 00", "02000000 02 00 01 00",
            "02000000 02 01 01 00",
        ])
        #expect(!changed)
        #expect(sent == [])
    }

    @Test func rfkill_hardBlock_isGivenUpWithTheReason() {
        #expect(
            throws: Failure(
                "hci0: switched off by a hardware switch, which no program can change; `rfkill list` shows it"
            )
        ) { try rfkill(["01000000 02 00 00 01"]) }
    }

    @Test func rfkill_softBlock_isTakenOff_andAwaited() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let near = Descriptor(owning: pair.near)
        pair.write(bytes("03000000 02 00 01 00"))
        let far = dup(pair.far.number)
        let kernel = try OwnThread("rfkill") {
            let far = Descriptor(owning: far)
            var entries = [PollEntry(far.number)]
            _ = wait(for: &entries, timeout: .seconds(60))
            var packet = [UInt8](repeating: 0, count: 8)
            guard read(far.number, &packet, 8) == 8, packet == bytes("03000000 02 02 00 00") else {
                return
            }
            let done = bytes("03000000 02 02 00 00")
            _ = write(far.number, done, done.count)
        }
        let before = SystemClock().now()
        #expect(try RFKill().unblock(on: near.number, for: "hci0", until: stop) == true)
        kernel.join()
        // Told by the event, not by the end of its patience.
        #expect(SystemClock().now() - before < .seconds(60))
    }

    @Test func rfkill_missingFromTheKernel_blocksNothing() throws {
        #expect(
            try RFKill(path: "/nonexistent/rfkill").unblock(for: "hci0", until: stop) == false
        )
    }
}
