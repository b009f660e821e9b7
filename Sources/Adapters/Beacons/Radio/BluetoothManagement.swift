// The Bluetooth management socket (BlueZ, doc/mgmt-protocol.rst). An advertisement monitor makes
// the kernel scan passively for us while bluetoothd uses the adapter.
import CBlueZ
import CLinux
import Glibc
import Host
import StatusBoard

/// Encodes management commands and decodes their replies.
enum BluetoothManagement {
    static let success: UInt8 = 0x00
    static let unknownCommand: UInt8 = 0x01
    static let noResources: UInt8 = 0x07
    static let notSupported: UInt8 = 0x0C
    static let permissionDenied: UInt8 = 0x14

    struct Command: Equatable {
        var name: String
        var opcode: UInt16
        var parameters: [UInt8]

        /// Opcode, adapter and length, 16 bits each, little-endian; then the parameters.
        func packet(for adapter: UInt16) -> [UInt8] {
            [opcode, adapter, UInt16(clamping: parameters.count)].littleEndianBytes + parameters
        }
    }

    /// A pattern in advertising data: `value` at `offset` of a structure of type `type`.
    struct Pattern: Equatable {
        var type: UInt8
        var offset: UInt8 = 0
        var value: [UInt8]

        /// Always 34 bytes: type, offset, length and 31 bytes of value.
        var bytes: [UInt8] {
            let value = value.prefix(31)
            let head = [type, offset, UInt8(value.count)] + value
            return head + [UInt8](repeating: 0, count: 34 - head.count)
        }
    }

    /// Returns the command that adds an advertisement monitor.
    ///
    /// While one exists, the kernel scans passively without a duplicate filter.
    static func addMonitor(_ patterns: [Pattern]) -> Command {
        Command(
            name: "Add Advertisement Patterns Monitor",
            opcode: 0x0052,
            parameters: [UInt8(clamping: patterns.count)] + patterns.flatMap(\.bytes)
        )
    }

    static func removeMonitor(_ handle: UInt16) -> Command {
        Command(
            name: "Remove Advertisement Monitor",
            opcode: 0x0053,
            parameters: littleEndian(handle)
        )
    }

    /// Sets interval and window of the scan for monitors (types 0x0013 and 0x0014; Linux 5.9).
    static func setMonitorScan(_ scan: ScanSettings) -> Command {
        let timing = scan.timing
        return Command(
            name: "Set Default System Configuration",
            opcode: 0x004C,
            parameters: [0x13, 0, 2] + timing.prefix(2) + [0x14, 0, 2] + timing.suffix(2)
        )
    }

    /// The answer to a command.
    struct Answer: Equatable {
        var opcode: UInt16
        var adapter: UInt16
        var status: UInt8
        var values: [UInt8]

        /// Parses Command Complete (0x0001) or Command Status (0x0002); nil for any other packet.
        init?(_ packet: ArraySlice<UInt8>) {
            var cursor = ByteCursor(packet)
            guard let event = cursor.littleEndian(2), event == 1 || event == 2,
                let adapter = cursor.littleEndian(2), let length = cursor.littleEndian(2),
                var body = cursor.bytes(Int(length)).map({ ByteCursor($0) }),
                let opcode = body.littleEndian(2), let status = body.byte()
            else { return nil }
            self.opcode = UInt16(truncatingIfNeeded: opcode)
            self.adapter = UInt16(truncatingIfNeeded: adapter)
            self.status = status
            values = Array(body.rest)
        }
    }

    /// Returns patterns for all known beacons.
    ///
    /// Only controllers that filter in hardware use them; otherwise the kernel reports everything.
    static func patterns(unknown: Bool) -> [Pattern] {
        [
            // iBeacon, RuuviTag, AltBeacon (behind any company), Eddystone, BTHome.
            Pattern(type: 0xFF, value: [0x4C, 0x00, 0x02, 0x15]),
            Pattern(type: 0xFF, value: [0x99, 0x04]),
            Pattern(type: 0xFF, offset: 2, value: [0xBE, 0xAC]),
            Pattern(type: 0x16, value: [0xAA, 0xFE]),
            Pattern(type: 0x16, value: [0xD2, 0xFC]),
        ]
            // Nearly all other advertisements begin with one of these flags.
            + (unknown
                ? [0x02, 0x04, 0x05, 0x06, 0x1A].map { Pattern(type: 0x01, value: [$0]) } : [])
    }
}

/// The management socket of the kernel.
final class ManagementSocket {
    private static let answerTimeout = Duration.seconds(5)

    private let socket: Descriptor
    private let name: String
    private let adapter: UInt16

    init(adapter: Int) throws {
        name = "hci\(adapter)"
        self.adapter = UInt16(truncatingIfNeeded: adapter)
        socket = try KernelSocket.bound(to: .control, for: name)
    }

    /// Takes ownership of a non-blocking socket that returns one packet per read.
    init(owning descriptor: Int32, adapter: Int) {
        name = "hci\(adapter)"
        self.adapter = UInt16(truncatingIfNeeded: adapter)
        socket = Descriptor(owning: descriptor)
    }

    /// Sends a command and waits for its answer; skips other events.
    func ask(
        _ command: BluetoothManagement.Command,
        until stop: StopSignal?,
        timeout: Duration = answerTimeout
    ) throws -> BluetoothManagement.Answer {
        _ = receive(command.opcode)
        let packet = command.packet(for: adapter)
        // Some kernels (6.12.43) return 0 for an accepted command.
        guard send(socket.number, packet, packet.count, Int32(MSG_NOSIGNAL)) >= 0 else {
            throw KernelSocket.error(command.name, name, errno)
        }
        let end = SystemClock().now() + timeout
        while SystemClock().now() < end, !(stop?.isRaised ?? false) {
            if let answer = receive(command.opcode) { return answer }
            var entries = [PollEntry(socket.number)]
            if let stop { entries.append(PollEntry(stop.descriptor)) }
            _ = wait(for: &entries, timeout: end - SystemClock().now())
        }
        throw NoAnswerError(command: command.name)
    }

    private func receive(_ opcode: UInt16) -> BluetoothManagement.Answer? {
        while let packet = KernelSocket.nextPacket(socket.number, atMost: 1024) {
            if let answer = BluetoothManagement.Answer(packet), answer.opcode == opcode,
                answer.adapter == adapter
            {
                return answer
            }
        }
        return nil
    }
}
