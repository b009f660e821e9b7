// The HCI numbers and commands that scanning needs (Core Specification, Vol 4, Part E).
import Host

/// Numbers and command packets of the Host Controller Interface.
enum HCI {
    static let commandPacket: UInt8 = 1
    static let eventPacket: UInt8 = 4

    static let commandComplete: UInt8 = 0x0E
    static let commandStatus: UInt8 = 0x0F
    static let leMetaEvent: UInt8 = 0x3E
    static let advertisingReport: UInt8 = 0x02
    static let extendedAdvertisingReport: UInt8 = 0x0D

    static let commandDisallowed: UInt8 = 0x0C

    /// A command: its opcode (7.x) and parameters.
    struct Command: Sendable {
        var name: String
        var opcode: UInt16
        var parameters: [UInt8]

        init(_ name: String, _ opcode: UInt16, _ parameters: [UInt8] = []) {
            (self.name, self.opcode, self.parameters) = (name, opcode, parameters)
        }

        /// Opcode and parameters after the H4 packet type.
        var packet: [UInt8] {
            [HCI.commandPacket] + littleEndian(opcode) + [UInt8(clamping: parameters.count)]
                + parameters
        }
    }

    /// The controller's answer to a command: Command Complete or Command Status (7.7.14, 7.7.15).
    struct Answer {
        var opcode: UInt16
        var status: UInt8
        var values: ArraySlice<UInt8>

        /// Parses an answer; nil for any other event.
        init?(_ event: ArraySlice<UInt8>) {
            var cursor = ByteCursor(event)
            let code = cursor.byte()
            guard code == HCI.commandComplete || code == HCI.commandStatus, cursor.byte() != nil
            else { return nil }
            // Command Complete has the status after the opcode, Command Status has it first.
            let early = code == HCI.commandStatus ? cursor.byte() : nil
            guard cursor.byte() != nil, let opcode = cursor.littleEndian(2),
                let status = early ?? cursor.byte()
            else { return nil }
            self.opcode = UInt16(truncatingIfNeeded: opcode)
            self.status = status
            values = code == HCI.commandComplete ? cursor.rest : []
        }
    }

    /// The effect of a command on the scan.
    enum ScanOrder: Equatable {
        case off
        case on(filtersDuplicates: Bool)

        /// Parses a command, from its opcode on; nil if it does not concern the scan.
        init?(_ command: ArraySlice<UInt8>) {
            var cursor = ByteCursor(command)
            guard let opcode = cursor.littleEndian(2), cursor.byte() != nil else { return nil }
            switch opcode {
            // Reset (7.3.2); LE Set Scan Enable (7.8.11; extended 7.8.65): enable, filter
            // duplicates.
            case 0x0C03: self = .off
            case 0x200C, 0x2042:
                guard let isOn = cursor.byte(), let filters = cursor.byte() else { return nil }
                self = isOn == 0 ? .off : .on(filtersDuplicates: filters != 0)
            default: return nil
            }
        }
    }

    static let reset = Command("Reset", 0x0C03)
    /// All events of the default mask, and LE Meta (bit 61).
    static let setEventMask =
        Command("Set Event Mask", 0x0C01, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0x00, 0x20])
    /// Advertising Report (bit 1) and Extended Advertising Report (bit 12) beside the default bits.
    static let setLEEventMask =
        Command("LE Set Event Mask", 0x2001, [0x1F, 0x10, 0, 0, 0, 0, 0, 0])
    static let readLocalSupportedCommands = Command("Read Local Supported Commands", 0x1002)
    static let readLocalFeatures = Command("LE Read Local Supported Features", 0x2003)

    /// Interval and window in units of 0.625 ms (7.8.10).
    static func setScanParameters(_ scan: ScanSettings) -> Command {
        let mode: UInt8 = scan.isActive ? 1 : 0
        return Command("LE Set Scan Parameters", 0x200B, [mode] + scan.timing + [0, 0])
    }

    static func setScanEnable(_ isOn: Bool) -> Command {
        // Duplicates are not filtered: each repeat is a measurement.
        Command("LE Set Scan Enable", 0x200C, [isOn ? 1 : 0, 0])
    }

    /// On the LE 1M PHY, which beacons use (7.8.64).
    static func setExtendedScanParameters(_ scan: ScanSettings) -> Command {
        let mode: UInt8 = scan.isActive ? 1 : 0
        return Command("LE Set Extended Scan Parameters", 0x2041, [0, 0, 1, mode] + scan.timing)
    }

    static func setExtendedScanEnable(_ isOn: Bool) -> Command {
        Command("LE Set Extended Scan Enable", 0x2042, [isOn ? 1 : 0, 0, 0, 0, 0, 0])
    }
}

/// The settings of a scan.
package struct ScanSettings: Sendable, Equatable {
    /// Also asks for scan responses.
    package var isActive = false
    package var interval = Duration.milliseconds(100)
    package var window = Duration.milliseconds(50)

    package init() {}

    /// Interval and window as HCI encodes them: 16 bits each, little-endian, units of 0.625 ms.
    var timing: [UInt8] {
        [interval, window].flatMap { duration -> [UInt8] in
            let units = duration.nanoseconds / 625_000
            return littleEndian(UInt16(clamping: min(max(4, units), 0x4000)))
        }
    }
}
