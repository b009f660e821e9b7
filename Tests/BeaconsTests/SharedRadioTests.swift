// An adapter that is shared with bluetoothd: a scripted management socket, and the monitor that asks for the scan.
import CBlueZ
import CLinux
import Configuration
import Glibc
import Host
import Records
import Support
import Synchronization
import Testing

@testable import Beacons

@Suite struct SharedRadioTests {
    /// A kernel that answers management commands by a rule: status and values.
    ///
    /// `enabling` is the command to the controller that comes with the answer to a monitor.
    private func share(
        enabling: String = "",
        scan: ScanSettings = ScanSettings(),
        _ rule: @escaping @Sendable (UInt16, [UInt8]) -> (UInt8, [UInt8]),
        _ body: (SharedRadio, StopSignal) throws -> Void
    ) throws -> [[UInt8]] {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let events = try SocketPair(SOCK_SEQPACKET)
        let stop = try StopSignal()
        let received = Heard()
        let far = dup(pair.far.number)
        let others = events.far.number
        let kernel = try OwnThread("kernel") {
            let far = Descriptor(owning: far)
            while !stop.isRaised {
                var entries = [PollEntry(far.number), PollEntry(stop.descriptor)]
                _ = wait(for: &entries)
                var packet = [UInt8](repeating: 0, count: 1024)
                let count = read(far.number, &packet, packet.count)
                guard count >= 6 else { continue }
                let command = Array(packet.prefix(count))
                received.all.withLock { $0.append(command) }
                let opcode = UInt16(command[1]) << 8 | UInt16(command[0])
                let (status, values) = rule(opcode, Array(command.dropFirst(6)))
                let length = UInt8(3 + values.count)
                let answer = [1, 0, 0, 0, length, 0] + command.prefix(2) + [status] + values
                _ = write(far.number, answer, answer.count)
                let order = [1] + bytes(enabling)
                if opcode == 0x52, order.count > 1 { _ = write(others, order, order.count) }
            }
        }
        let link = KernelLink(owning: events.near, name: "hci0")
        let radio = SharedRadio(
            link,
            ManagementSocket(owning: pair.near, adapter: 0),
            scan,
            keepsUnknown: false,
            powerCycle: { received.all.withLock { $0.append([0xFF]) } }
        )
        let result = Swift.Result { try body(radio, try StopSignal()) }
        stop.raise()
        kernel.join()
        try result.get()
        return received.all.withLock { $0 }
    }

    private final class Heard: Sendable { let all = Mutex([[UInt8]]()) }

    @Test func monitor_isAdded_replacedAndRemoved() throws {
        let next = Mutex<UInt8>(0)
        let commands = try share(
            enabling: "0C20 02 0100",
            { opcode, _ in
                guard opcode == 0x52 else { return (0, []) }
                let handle = next.withLock { count -> UInt8 in
                    count += 1
                    return count
                }
                return (0, [handle, 0])
            }
        ) { radio, stop in
            try radio.start(until: stop) { _ in }
            try radio.start(until: stop) { _ in }
            try radio.reset(until: stop) { _ in }
            radio.end { _ in }
            radio.end { _ in }
        }
        // Before each monitor, for how long each 0.625 ms the scan is to listen (0x4C).
        let short = commands.map { hex([0x4C, 0x52].contains($0[0]) ? [$0[0]] : $0) }
        #expect(
            short == [
                "4c", "52", "5300000002000100", "4c", "52", "ff", "5300000002000200", "4c", "52",
                "5300000002000300",
            ]
        )
        #expect(commands[1].count == 6 + 1 + 5 * 34)
    }

    private static let started: @Sendable (UInt16, [UInt8]) -> (UInt8, [UInt8]) = { opcode, _ in
        (0, opcode == 0x52 ? [5, 0] : [])
    }

    @Test func paceOfTheScan_isGivenToTheKernel() throws {
        var scan = ScanSettings()
        scan.interval = .milliseconds(200)
        scan.window = .milliseconds(20)
        let commands = try share(enabling: "0C20 02 0100", scan: scan, Self.started) {
            radio,
            stop in
            try radio.start(until: stop) { _ in }
            #expect(radio.detail == "passive scan, shared with bluetoothd")
            #expect(radio.departures.isEmpty)
        }
        // Type, length and value of interval (320 times 0.625 ms) and window (32).
        #expect(commands.first.map { hex($0) } == "4c0000000a00" + "1300024001" + "1400022000")
    }

    @Test(arguments: [true, false])
    func whatIsNotDoneBesideBluetoothd_isSaid(isActive: Bool) throws {
        var scan = ScanSettings()
        scan.isActive = isActive
        let old: @Sendable (UInt16, [UInt8]) -> (UInt8, [UInt8]) = { opcode, values in
            opcode == 0x4C ? (0x01, []) : Self.started(opcode, values)
        }
        _ = try share(enabling: "0C20 02 0100", scan: scan, old) { radio, stop in
            try radio.start(until: stop) { _ in }
            let active = isActive ? ", not active" : ""
            #expect(
                radio.detail
                    == "passive scan, shared with bluetoothd\(active), at the kernel's pace"
            )
            #expect(radio.departures.count == (isActive ? 2 : 1))
            #expect(radio.departures.last?.text.contains("beacons.scan_interval") == true)
        }
    }

    @Test func kernelWithoutMonitors_isDistinguished() throws {
        for status: UInt8 in [0x01, 0x0C] {
            _ = try share({ _, _ in (status, []) }) { radio, stop in
                #expect(throws: SharedRadio.NotSupportedError.self) {
                    try radio.start(until: stop) { _ in }
                }
            }
        }
    }

    /// Raw commands are better then.
    @Test func kernelThatFiltersDuplicates_isNotSharedWith() throws {
        let commands = try share(
            enabling: "4220 06 010100000000",
            { opcode, _ in
                (0, opcode == 0x52 ? [5, 0] : [])
            }
        ) { radio, stop in
            #expect(throws: SharedRadio.NotSupportedError.self) {
                try radio.start(until: stop) { _ in }
            }
        }
        #expect(commands.last.map { hex($0) } == "5300000002000500")
    }

    @Test func refusals_sayWhatWasRefused() throws {
        _ = try share({ _, _ in (0x0A, []) }) { radio, stop in
            #expect(throws: ScanError.self) { try radio.start(until: stop) { _ in } }
        }
        _ = try share({ _, _ in (0x14, []) }) { radio, stop in
            let error = Failure(
                "Add Advertisement Patterns Monitor: no permission; run it by its service, or give it CAP_NET_ADMIN",
                code: .permission
            )
            #expect(throws: error) { try radio.start(until: stop) { _ in } }
        }
    }

    /// Always has an event, as a controller amid more beacons than we can read.
    private final class EndlessLink: HCILink {
        let descriptor: Int32 = -1
        let isExclusive = false
        let losses = 0
        let hasConnections = false
        func send(_ command: HCI.Command) {}
        func receive() -> ArraySlice<UInt8>? { [0x3E, 0] }
        func takeForeignOrder() -> HCI.ScanOrder? { nil }
    }

    @Test func controllerThatNeverPauses_keepsNoStopWaiting() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let (near, far) = (pair.near, pair.far.number)
        let stop = try StopSignal()
        let isDone = Mutex(false)
        // The answers to both commands are there before they are asked for.
        let thread = try OwnThread("shared") {
            let management = ManagementSocket(owning: near, adapter: 0)
            let radio = SharedRadio(
                EndlessLink(),
                management,
                ScanSettings(),
                keepsUnknown: false,
                powerCycle: {}
            )
            try? radio.start(until: stop) { _ in stop.raise() }
            isDone.withLock { $0 = true }
        }
        for opcode: UInt8 in [0x4C, 0x52] {
            var packet = [UInt8](repeating: 0, count: 1024)
            var entries = [PollEntry(far)]
            _ = wait(for: &entries, timeout: .seconds(60))
            _ = read(far, &packet, packet.count)
            let answer = bytes("0100 0000 0500") + [opcode, 0, 0, 5, 0]
            _ = write(far, answer, answer.count)
        }
        #expect(eventually { isDone.withLock { $0 } })
        thread.join()
    }

    /// Monitors of crashed programs stay until the adapter goes; with one of them the kernel scans as well.
    @Test func kernelFullOfMonitors_scansAnyway_andRemovesNone() throws {
        let commands = try share({ _, _ in (0x07, []) }) { radio, stop in
            try radio.start(until: stop) { _ in }
            radio.end { _ in }
        }
        #expect(commands.map { $0[0] } == [0x4C, 0x52])
    }
}
