// Setting a scan up: the commands that are sent, and every way a controller may answer.
import CBlueZ
import CLinux
import Foundation
import Glibc
import Host
import Synchronization
import Testing

@testable import Beacons

/// LE features with bit 12, extended advertising.
private let features: [UInt8] = [0xFF, 0x10, 0, 0, 0, 0, 0, 0]

@Suite struct ScannerTests {
    private struct Result {
        var isExtended: Bool?
        var foundRunning: Bool?
        var error: String?
        var received: [[UInt8]]
        var opcodes: [UInt16]
    }

    private func scan(
        _ settings: ScanSettings = ScanSettings(),
        ends: Bool = false,
        _ rule: @escaping @Sendable (UInt16, [UInt8]) -> ScriptedController.Answer
    ) throws -> Result {
        let pair = try SocketPair(SOCK_STREAM)
        let near = pair.near
        let controller = try ScriptedController(pair, rule)
        defer { controller.end() }
        let link = H4Link(owning: near, name: "h4:test")
        var isExtended: Bool?
        var foundRunning: Bool?
        var message: String?
        do {
            let scanner = try Scanner(link, settings, until: StopSignal())
            isExtended = scanner.isExtended
            foundRunning = scanner.foundRunning
            if ends { scanner.end() }
        } catch { message = "\(error)" }
        return Result(
            isExtended: isExtended,
            foundRunning: foundRunning,
            error: message,
            received: controller.received,
            opcodes: controller.opcodes
        )
    }

    @Test func extended_isChosenWhereTheControllerHasTheCommands() throws {
        var settings = ScanSettings()
        settings.isActive = true
        let result = try scan(settings, ends: true) { opcode, _ in
            .complete(
                0,
                opcode == 0x1002 ? supported(extended: true) : opcode == 0x2003 ? features : []
            )
        }
        #expect(result.isExtended == true)
        #expect(
            result.received == [
                bytes("030C"), bytes("010C FFFFFFFFFF1F0020"), bytes("0120 1F10000000000000"),
                bytes("0210"), bytes("0320"), bytes("4120 000001 01 A000 5000"),
                bytes("4220 000000000000"), bytes("4220 010000000000"), bytes("4220 000000000000"),
            ]
        )
    }

    @Test func legacy_isChosenOtherwise() throws {
        let result = try scan(ends: true) { opcode, _ in
            .complete(0, opcode == 0x1002 ? supported(extended: false) : [])
        }
        #expect(result.isExtended == false)
        #expect(
            Array(result.received.dropFirst(4)) == [
                bytes("0B20 00 A000 5000 0000"), bytes("0C20 0000"), bytes("0C20 0100"),
                bytes("0C20 0000"),
            ]
        )
    }

    /// The CYW43455 of a Raspberry Pi claims Bluetooth 5.0; bit 12 means extended advertising.
    @Test(
        arguments: [([0xFF, 0x10], true), ([0xFF, 0xEF], false), ([], true)] as [([UInt8], Bool)]
    )
    func features_mustNotDenyWhatTheCommandsPromise(features: [UInt8], isExtended: Bool) throws {
        let result = try scan { opcode, _ in
            switch opcode {
            case 0x1002: .complete(0, supported(extended: true))
            case 0x2003:
                features.isEmpty ? .complete(0x01) : .complete(0, features + [0, 0, 0, 0, 0, 0])
            default: .complete(0)
            }
        }
        #expect(result.error == nil)
        #expect(result.isExtended == isExtended)
    }

    /// Parameters cannot be changed while a scan is on: that is how one shows that was on before.
    @Test func scanLeftOn_isNoticed_endedAndStartedAnew() throws {
        let isOn = Mutex(true)
        let result = try scan { opcode, parameters in
            switch opcode {
            case 0x1002: return .complete(0, supported(extended: false))
            case 0x200B: return .complete(isOn.withLock { $0 } ? 0x0C : 0)
            case 0x200C:
                isOn.withLock { $0 = parameters[0] == 1 }
                return .complete(0)
            default: return .complete(0)
            }
        }
        #expect(result.foundRunning == true)
        #expect(isOn.withLock { $0 })
        #expect(Array(result.opcodes.suffix(4)) == [0x200B, 0x200C, 0x200B, 0x200C])
    }

    /// Not allowed where neither a running scan nor the other kind of commands explains it.
    @Test func enabling_isNotToleratedWhereItIsNotAllowed() throws {
        let result = try scan { opcode, parameters in
            switch opcode {
            case 0x1002: .complete(0, supported(extended: false))
            case 0x200C where parameters[0] == 1: .complete(0x0C)
            case 0x2041, 0x2042: .complete(0x01)
            default: .complete(0)
            }
        }
        #expect(result.error == "the controller refused LE Set Scan Enable with status 0x0c")
    }

    /// Advertisements received during a command count like any other.
    @Test func eventsBetweenAnswers_arePassedOn() throws {
        let pair = try SocketPair(SOCK_STREAM)
        let near = pair.near
        let report = Event.legacy(Event.legacyReport(Sample.iBeacon))
        pair.write([4] + report)
        let controller = try ScriptedController(pair) { opcode, _ in
            .complete(0, opcode == 0x1002 ? supported(extended: false) : [])
        }
        defer { controller.end() }
        var passed: [[UInt8]] = []
        let link = H4Link(owning: near, name: "h4:test")
        let scanner = try Scanner(link, ScanSettings(), until: StopSignal()) {
            passed.append(Array($0))
        }
        #expect(passed.contains(report))
        controller.say(report)
        passed = []
        scanner.end { passed.append(Array($0)) }
        #expect(passed.contains(report))
    }

    @Test func kernelsController_isNeitherResetNorItsMasksSet() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let link = KernelLink(owning: pair.near, name: "hci9")
        #expect(!link.isExclusive)
        #expect(throws: NoAnswerError.self) {
            let stop = try StopSignal()
            stop.raise()
            _ = try Scanner(link, ScanSettings(), until: stop)
        }
        #expect(pair.read() == [1, 0x02, 0x10, 0])
    }

    @Test func scanLeftOff_mayRefuseToBeDisabled() throws {
        let result = try scan { opcode, parameters in
            opcode == 0x1002
                ? .complete(0, supported(extended: false))
                : .complete(opcode == 0x200C && parameters[0] == 0 ? 0x0C : 0)
        }
        #expect(result.isExtended == false)
        #expect(result.error == nil)
    }

    @Test(arguments: [0x01, 0x0C] as [UInt8])
    func refusedKind_isFollowedByTheOther(status: UInt8) throws {
        let toLegacy = try scan { opcode, _ in
            opcode == 0x1002
                ? .complete(0, supported(extended: true))
                : opcode == 0x2041 || opcode == 0x2042 ? .status(status) : .complete(0)
        }
        #expect(toLegacy.isExtended == false)
        let toExtended = try scan { opcode, _ in
            opcode == 0x1002
                ? .complete(0, supported(extended: false))
                : opcode == 0x200B || opcode == 0x200C ? .complete(status) : .complete(0)
        }
        #expect(toExtended.isExtended == true)
    }

    @Test func bothKindsRefused_namesTheFirst() throws {
        let result = try scan { opcode, _ in
            opcode == 0x1002
                ? .complete(0, supported(extended: true)) : .complete(opcode >= 0x200B ? 0x0C : 0)
        }
        #expect(
            result.error
                == "the controller refused LE Set Extended Scan Parameters with status 0x0c"
        )
    }

    @Test(
        arguments: [
            (0x0C03, "Reset"), (0x0C01, "Set Event Mask"), (0x2001, "LE Set Event Mask"),
            (0x200B, "LE Set Scan Parameters"),
        ] as [(UInt16, String)]
    )
    func refusal_namesTheCommand(refused: UInt16, name: String) throws {
        let result = try scan { opcode, _ in
            opcode == 0x1002
                ? .complete(0, supported(extended: false)) : .complete(opcode == refused ? 0x12 : 0)
        }
        #expect(result.error == "the controller refused \(name) with status 0x12")
    }

    @Test func unknownSupportedCommands_isLegacy() throws {
        let result = try scan { opcode, _ in .complete(opcode == 0x1002 ? 0x01 : 0) }
        #expect(result.isExtended == false)
        let short = try scan { opcode, _ in .complete(0, opcode == 0x1002 ? [0xFF] : []) }
        #expect(short.isExtended == false)
    }

    @Test func silence_namesTheCommandThatGotNoAnswer() throws {
        let result = try scan { opcode, _ in opcode == 0x0C01 ? .silence : .complete(0) }
        #expect(result.error == "the controller did not answer Set Event Mask")
    }

    @Test func hangUp_isReported() throws {
        let result = try scan { opcode, _ in opcode == 0x0C01 ? .hangUp : .complete(0) }
        #expect(result.error == "h4:test: the controller closed the connection")
    }
}
