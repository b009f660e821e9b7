// The whole source on scripted controllers: silence, failures, adapters that come and go.
import Board
import CBlueZ
import CLinux
import Configuration
import Glibc
import Host
import Queue
import Streams
import Support
import Synchronization
import Testing

@testable import Beacons

/// A machine with one adapter, `hci9`, whose controller is scripted.
private final class Machine: Sendable {
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

    /// What the kernel tells of the adapter.
    func tell(_ kind: AdapterChange.Kind) {
        state.withLock { $0.isThere = kind != .removed }
        let packet = bytes("04FD06 0100 0\(kind.rawValue)00 0900")
        _ = write(adapters, packet, packet.count)
    }

    var current: ScriptedController? { state.withLock { $0.controllers.last } }
    var opened: [SilenceRecovery.Step] { state.withLock { $0.opened } }
    var powerCycles: Int { state.withLock { $0.powerCycles } }

    func source() -> any RadioSource { Source(self, watched) }

    fileprivate func open(_ step: SilenceRecovery.Step) throws -> any Radio {
        state.withLock { $0.opened.append(step) }
        guard state.withLock({ $0.isThere }) else { throw NoAdapter(name: "hci9") }
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
        let watch: AdapterWatch?
        private let machine: Machine

        init(_ machine: Machine, _ watched: Int32) {
            self.machine = machine
            watch = AdapterWatch(owning: watched)
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

@Suite struct SessionTests {
    private let report = Event.legacy(Event.legacyReport(Sample.iBeacon))

    /// A source that scans already.
    private func run(_ machine: Machine) throws -> RunningAdapter {
        let running = try RunningAdapter(
            BeaconSettings { $0.source = .adapter(9) },
            clock: machine.clock,
            radios: { machine.source() }
        )
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        return running
    }

    private func end(_ running: RunningAdapter, _ machine: Machine) {
        running.stop()
        machine.end()
    }

    /// Time passes, and the health timer asks.
    private func pass(_ seconds: Int64, _ machine: Machine, _ running: RunningAdapter) {
        machine.clock.advance(by: .seconds(seconds))
        running.adapter.checkHealth()
    }

    private func scans(_ machine: Machine) -> Int {
        machine.state.withLock { $0.controllers }.reduce(0) { sum, controller in
            sum + controller.received.filter { $0 == bytes("0C20 0100") }.count
        }
    }

    @Test(arguments: [true, false])
    func silentController_isClimbed_thenLeftInPeace(isKernel: Bool) throws {
        let machine = try Machine(isKernel ? .kernel : .h4)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 1 })
        pass(60, machine, running)
        let silent = "passive scan, legacy, nothing heard for"
        #expect(eventually { running.board.loadedDetail == "\(silent) 1 min" })
        #expect(scans(machine) == 1)

        pass(30, machine, running)
        #expect(eventually { running.board.loadedDetail == "\(silent) 1 min, scan restarted" })
        #expect(scans(machine) == 2)
        let resets = { machine.current?.opcodes.filter { $0 == 0x0C03 }.count ?? 0 }
        let before = resets()
        pass(30, machine, running)
        #expect(eventually { running.board.loadedDetail == "\(silent) 2 min, controller reset" })
        #expect(isKernel ? machine.powerCycles == 1 : resets() == before + 1)
        pass(30, machine, running)
        #expect(eventually { machine.opened == [.restart, .reopen] && scans(machine) == 4 })
        #expect(
            eventually {
                running.board.loadedDetail
                    == "\(silent) 2 min, controller reset and opened anew"
            }
        )
        pass(30, machine, running)
        #expect(
            eventually {
                running.board.loadedDetail == "\(silent) 3 min, the controller answers"
            }
        )
        // A quiet place is no error, and is left alone for a while.
        pass(240, machine, running)
        #expect(
            eventually {
                running.board.loadedDetail == "\(silent) 7 min, the controller answers"
            }
        )
        #expect(scans(machine) == 4)
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 2 })
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        #expect(running.board.failure == nil)
    }

    @Test func controllerThatHangs_isAnError_andIsResetUntilItAnswers() throws {
        let isHung = Mutex(false)
        let machine = try Machine(.kernel) { opcode, _ in
            isHung.withLock { $0 } ? .complete(0x1F) : Machine.answer(opcode)
        }
        let running = try run(machine)
        defer { end(running, machine) }
        isHung.withLock { $0 = true }
        pass(90, machine, running)
        #expect(eventually { running.board.failure != nil })
        #expect(eventually { machine.opened.contains(.reopen) })
        isHung.withLock { $0 = false }
        #expect(eventually { running.board.loadedDetail != nil })
        #expect(Array(machine.opened.prefix(4)) == [.restart, .restart, .reset, .reopen])
    }

    @Test func adapterTakenAway_isAnError_andCollectsAgainWhenItIsBack() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.tell(.removed)
        #expect(eventually { running.board.failure != nil })
        #expect(
            running.board.failure?.message == "hci9: no such Bluetooth adapter; plug it in"
        )
        // It waits to be told; asked for health it looks, too.
        let before = machine.opened.count
        running.adapter.checkHealth()
        #expect(eventually { machine.opened.count == before + 1 })
        machine.tell(.added)
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 1 })
    }

    @Test func adapterSwitchedOff_isSaid_andItIsOpenedAgain() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.tell(.down)
        #expect(eventually { running.board.failure != nil })
        #expect(running.board.failure?.message.hasPrefix("hci9: it was switched off;") == true)
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        #expect(machine.opened.count == 2)
    }

    /// The kernel shows others' commands to everyone.
    @Test func scanThatAnotherProgramEnded_isStartedAgainSoon() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.current?.say(bytes("0C20 02 0000"), type: 1)
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 1 })
        machine.clock.advance(by: .milliseconds(500))
        #expect(eventually { machine.opened == [.restart, .restart] })
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        #expect(running.board.failure == nil)
    }

    @Test func scanThatIsAnotherProgramsNow_isLeftOnAtTheEnd() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.current?.say(bytes("0C20 02 0101"), type: 1)
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 1 })
        running.stop()
        #expect(machine.current?.received.last == bytes("0C20 0100"))
    }

    @Test func whatIsHeardWhileOpening_isKept_andItsLossesCounted() throws {
        let machine = try Machine(.h4)
        machine.state.withLock { $0.early = [report, [0x3E, 3, 0x02, 9, 0]] }
        let running = try run(machine)
        defer { end(running, machine) }
        #expect(running.collector.sightings.count == 1)
        running.stop()
        #expect(running.losses.records == 1)
    }

    @Test func whatWasLost_isToldOnceAndCounted() throws {
        let machine = try Machine(.h4)
        let running = try run(machine)
        defer { end(running, machine) }
        // An event that claims more than it has, in the middle of good ones.
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 1 })
        machine.clock.advance(by: .seconds(1))
        machine.current?.say([0x3E, 3, 0x02, 9, 0])
        machine.current?.say(report)
        #expect(eventually { running.collector.sightings.count == 2 })
        running.stop()
        #expect(running.losses.records == 1)
        #expect(running.losses.kinds == [.missed])
        #expect(running.board.state.value?.dropped == 1)
    }

    // MARK: What is done at the end

    @Test(arguments: [(true, true, false), (true, false, true), (false, true, true)])
    func scan_isSwitchedOffAtTheEnd_unlessItWasOnAndOthersAreThere(
        wasOn: Bool,
        hasCompany: Bool,
        isEnded: Bool
    ) throws {
        let isOn = Mutex(wasOn)
        let pair = try SocketPair(SOCK_SEQPACKET)
        let near = pair.near
        let controller = try ScriptedController(pair) { opcode, parameters in
            switch opcode {
            case 0x200B: return .complete(isOn.withLock { $0 } ? 0x0C : 0)
            case 0x200C:
                isOn.withLock { $0 = parameters[0] == 1 }
                return .complete(0)
            default: return Machine.answer(opcode)
            }
        }
        defer { controller.end() }
        let link = KernelLink(owning: near, name: "hci9")
        let radio = CommandedRadio(link, ScanSettings(), hasCompany: hasCompany)
        let stop = try StopSignal()
        try radio.start(until: stop) { _ in }
        // Started again by the recovery: that it is on now is our own doing.
        try radio.start(until: stop) { _ in }
        #expect(isOn.withLock { $0 })
        radio.end { _ in }
        #expect(isOn.withLock { $0 } == !isEnded)
    }
}

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

    @Test func kernelWithoutMonitors_isToldApart() throws {
        for status: UInt8 in [0x01, 0x0C] {
            _ = try share({ _, _ in (status, []) }) { radio, stop in
                #expect(throws: SharedRadio.NotSupported.self) {
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
            #expect(throws: SharedRadio.NotSupported.self) { try radio.start(until: stop) { _ in } }
        }
        #expect(commands.last.map { hex($0) } == "5300000002000500")
    }

    @Test func refusals_sayWhatWasRefused() throws {
        _ = try share({ _, _ in (0x0A, []) }) { radio, stop in
            #expect(throws: Refusal.self) { try radio.start(until: stop) { _ in } }
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
    @Test func kernelFullOfMonitors_scansAnyway_andNothingIsRemoved() throws {
        let commands = try share({ _, _ in (0x07, []) }) { radio, stop in
            try radio.start(until: stop) { _ in }
            radio.end { _ in }
        }
        #expect(commands.map { $0[0] } == [0x4C, 0x52])
    }
}
