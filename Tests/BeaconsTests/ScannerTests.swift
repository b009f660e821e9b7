// Setting a scan up: the commands that are sent, and every way a controller may answer.
import CBlueZ
import CLinux
import Board
import Foundation
import Glibc
import Host
import Synchronization
import Testing

@testable import Beacons

/// A controller that answers each command by a rule, on a socket of its own.
private final class ScriptedController: Sendable {
    /// What comes back for a command: a status with values, a bare Command Status, or nothing.
    enum Answer {
        case complete(UInt8, [UInt8] = [])
        case status(UInt8)
        case silence
        case hangUp
    }

    private let script: Script
    private let stop: StopSignal
    private let lane: Mutex<Slot>

    private struct Slot: ~Copyable { var lane: Lane? }

    /// The commands received: opcode, then the parameters.
    var received: [[UInt8]] { script.commands.withLock { $0 } }
    var opcodes: [UInt16] { received.map { UInt16($0[1]) << 8 | UInt16($0[0]) } }

    init(_ pair: consuming SocketPair, _ rule: @escaping Script.Rule) throws {
        let stop = try StopSignal()
        let script = Script(rule)
        let number = dup(pair.far.number)
        self.stop = stop
        self.script = script
        lane = Mutex(
            Slot(
                lane: try Lane("controller") {
                    let socket = Descriptor(owning: number)
                    script.serve(socket.number, stop)
                }
            )
        )
    }

    func end() {
        stop.raise()
        lane.withLock { $0.lane.take() }?.join()
    }
}

/// The controller's side of the conversation.
private final class Script: Sendable {
    typealias Rule = @Sendable (UInt16, [UInt8]) -> ScriptedController.Answer

    let commands = Mutex([[UInt8]]())
    private let rule: Rule

    init(_ rule: @escaping Rule) { self.rule = rule }

    func serve(_ socket: Int32, _ stop: StopSignal) {
        var buffer: [UInt8] = []
        while !stop.isRaised {
            var entries = [PollEntry(socket), PollEntry(stop.descriptor)]
            _ = wait(for: &entries)
            var chunk = [UInt8](repeating: 0, count: 512)
            let count = recv(socket, &chunk, chunk.count, Int32(MSG_DONTWAIT))
            guard count != 0 else { return }
            buffer += chunk.prefix(max(0, count))
            while buffer.count >= 4, buffer.count >= 4 + Int(buffer[3]) {
                let command = Array(buffer[1..<3] + buffer[4..<4 + Int(buffer[3])])
                buffer.removeFirst(4 + Int(buffer[3]))
                commands.withLock { $0.append(command) }
                let opcode = UInt16(command[1]) << 8 | UInt16(command[0])
                guard answer(rule(opcode, Array(command.dropFirst(2))), to: command, on: socket)
                else {
                    return
                }
            }
        }
    }

    private func answer(_ answer: ScriptedController.Answer, to command: [UInt8], on socket: Int32)
        -> Bool
    {
        // Others' answers and reports come in between; they must not be taken for ours.
        var packet: [UInt8] = [4, 0x0E, 4, 1, 0x34, 0x12, 0x0C] + [4, 0x13, 1, 0]
        switch answer {
        case .complete(let status, let values):
            packet += [4, 0x0E, UInt8(4 + values.count), 1] + command.prefix(2) + [status] + values
        case .status(let status):
            packet += [4, 0x0F, 4, status, 1] + command.prefix(2)
        case .silence: break
        case .hangUp:
            shutdown(socket, Int32(SHUT_RDWR))
            return false
        }
        return send(socket, packet, packet.count, Int32(MSG_NOSIGNAL)) == packet.count
    }
}

/// Supported commands (octet 37, bits 5 and 6: extended scanning).
private func supported(extended: Bool) -> [UInt8] {
    var commands = [UInt8](repeating: 0xFF, count: 64)
    commands[37] = extended ? 0x60 : 0x1F
    return commands
}

@Suite struct ScannerTests {
    private struct Result {
        var isExtended: Bool?
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
        var message: String?
        do {
            let scanner = try Scanner(link, settings, until: StopSignal())
            isExtended = scanner.isExtended
            if ends { scanner.end() }
        } catch { message = "\(error)" }
        return Result(
            isExtended: isExtended,
            error: message,
            received: controller.received,
            opcodes: controller.opcodes
        )
    }

    @Test func extended_isChosenWhereTheControllerHasTheCommands() throws {
        var settings = ScanSettings()
        settings.isActive = true
        let result = try scan(settings, ends: true) { opcode, _ in
            .complete(0, opcode == 0x1002 ? supported(extended: true) : [])
        }
        #expect(result.isExtended == true)
        #expect(
            result.received == [
                bytes("030C"), bytes("010C FFFFFFFFFF1F0020"), bytes("0120 1F10000000000000"),
                bytes("0210"), bytes("4220 000000000000"), bytes("4120 000001 01 A000 5000"),
                bytes("4220 010000000000"), bytes("4220 000000000000"),
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
                bytes("0C20 0000"), bytes("0B20 00 A000 5000 0000"), bytes("0C20 0100"),
                bytes("0C20 0000"),
            ]
        )
    }

    @Test func kernelsController_isNeitherResetNorItsMasksSet() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let link = KernelLink(owning: pair.near, name: "hci9")
        #expect(!link.isExclusive)
        #expect(throws: NoAnswer.self) {
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

    @Test func hangUp_isTold() throws {
        let result = try scan { opcode, _ in opcode == 0x0C01 ? .hangUp : .complete(0) }
        #expect(result.error == "h4:test: the controller closed the connection")
    }
}
