// A machine whose Bluetooth adapter is scripted.
import CBlueZ
import CLinux
import Glibc
import Host
import Records
import Synchronization

@testable import Beacons

/// A machine with one adapter, `hci9`, whose controller is scripted.
final class Machine: Sendable {
    enum Kind: Sendable { case h4, kernel }

    struct State {
        var controllers: [ScriptedController] = []
        var opened: [SilenceRecovery.Step] = []
        var powerCycles = 0
        var isThere = true
        /// Heard while the controller is opened.
        var early: [[UInt8]] = []
    }

    let state = Mutex(State())
    let clock = ManualClock(
        Stamp(boot: BootInstant(nanoseconds: 1_000_000_000), wall: WallTime(milliseconds: 0))
    )
    private let kind: Kind
    private let rule: Script.Rule
    /// The far end of the watch.
    private let adapters: Int32
    private let watched: Int32

    init(_ kind: Kind, _ rule: @escaping Script.Rule = { opcode, _ in Machine.answer(opcode) })
        throws
    {
        self.kind = kind
        self.rule = rule
        var ends: [Int32] = [-1, -1]
        let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | flags, 0, &ends) == 0 else {
            throw SystemError.last("socketpair")
        }
        watched = ends[0]
        adapters = ends[1]
    }

    deinit { close(adapters) }

    static func answer(_ opcode: UInt16) -> ScriptedController.Answer {
        .complete(0, opcode == 0x1002 ? supported(extended: false) : [])
    }

    /// Sends the kernel's notification of a change of the adapter.
    func warn(_ kind: AdapterChange.Kind) {
        state.withLock { $0.isThere = kind != .removed }
        let packet = bytes("04FD06 0100 0\(kind.rawValue)00 0900")
        _ = write(adapters, packet, packet.count)
    }

    var current: ScriptedController? { state.withLock { $0.controllers.last } }
    var opened: [SilenceRecovery.Step] { state.withLock { $0.opened } }
    var powerCycles: Int { state.withLock { $0.powerCycles } }

    func source() -> any RadioSource { Source(self, watched) }

    func open(_ step: SilenceRecovery.Step) throws -> any Radio {
        state.withLock { $0.opened.append(step) }
        guard state.withLock({ $0.isThere }) else { throw NoAdapterError(name: "hci9") }
        let pair = try SocketPair(kind == .h4 ? SOCK_STREAM : SOCK_SEQPACKET)
        let near = pair.near
        let controller = try ScriptedController(pair, rule)
        state.withLock { $0.controllers.append(controller) }
        switch kind {
        case .h4: return CommandedRadio(H4Link(owning: near, name: "hci9"), ScanSettings())
        case .kernel:
            let link = KernelLink(owning: near, name: "hci9")
            let cycle = { [self] in state.withLock { $0.powerCycles += 1 } }
            if step != .restart { cycle() }
            return CommandedRadio(link, ScanSettings(), powerCycle: cycle)
        }
    }

    func end() { for controller in state.withLock({ $0.controllers }) { controller.end() } }

    private final class Source: RadioSource {
        let name = "hci9"
        let adapter: Int? = 9
        let watch: AdapterMonitor?
        private let machine: Machine

        init(_ machine: Machine, _ watched: Int32) {
            self.machine = machine
            watch = AdapterMonitor(owning: watched)
        }

        func open(
            _ step: SilenceRecovery.Step,
            until stop: StopSignal,
            _ pass: EventSink
        ) throws -> any Radio {
            for event in machine.state.withLock({ $0.early }) { pass(event[...]) }
            return try machine.open(step)
        }
    }
}
