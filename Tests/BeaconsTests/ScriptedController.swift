// A controller that answers by a rule, for scans and for whole sessions.
import CBlueZ
import CLinux
import Glibc
import Host
import Synchronization

import Beacons

/// A controller that answers each command by a rule, on its own socket.
final class ScriptedController: Sendable {
    /// The answer to a command: a status with values, a bare Command Status, or nothing.
    enum Answer {
        case complete(UInt8, [UInt8] = [])
        case status(UInt8)
        case silence
        case hangUp
    }

    private let script: Script
    private let socket: Int32
    private let stop: StopSignal
    private let thread: Mutex<Slot>

    private struct Slot: ~Copyable { var thread: OwnThread? }

    /// The commands received: opcode, then the parameters.
    var received: [[UInt8]] { script.commands.withLock { $0 } }
    var opcodes: [UInt16] { received.map { UInt16($0[1]) << 8 | UInt16($0[0]) } }

    init(_ pair: consuming SocketPair, _ rule: @escaping Script.Rule) throws {
        let stop = try StopSignal()
        let script = Script(rule)
        let number = dup(pair.far.number)
        self.stop = stop
        self.script = script
        socket = number
        thread = Mutex(
            Slot(
                thread: try OwnThread("controller") {
                    let socket = Descriptor(owning: number)
                    script.serve(socket.number, stop)
                }
            )
        )
    }

    /// Sends an event of its own, from the event code on; for a kernel's socket as for H4.
    func say(_ event: [UInt8], type: UInt8 = 4) {
        let packet = [type] + event
        _ = send(socket, packet, packet.count, Int32(MSG_NOSIGNAL))
    }

    func end() {
        stop.raise()
        thread.withLock { $0.thread.take() }?.join()
    }
}

/// The controller's side of the conversation.
final class Script: Sendable {
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
        var packets: [[UInt8]] = [[4, 0x0E, 4, 1, 0x34, 0x12, 0x0C], [4, 0x13, 1, 0]]
        switch answer {
        case .complete(let status, let values):
            let head = [4, 0x0E, UInt8(4 + values.count), 1] + command.prefix(2)
            packets.append(head + [status] + values)
        case .status(let status):
            packets.append([4, 0x0F, 4, status, 1] + command.prefix(2))
        case .silence: break
        case .hangUp:
            shutdown(socket, Int32(SHUT_RDWR))
            return false
        }
        return packets.allSatisfy {
            send(socket, $0, $0.count, Int32(MSG_NOSIGNAL)) == $0.count
        }
    }
}

/// Supported commands (octet 37, bits 5 and 6: extended scanning).
func supported(extended: Bool) -> [UInt8] {
    var commands = [UInt8](repeating: 0xFF, count: 64)
    commands[37] = extended ? 0x60 : 0x1F
    return commands
}
