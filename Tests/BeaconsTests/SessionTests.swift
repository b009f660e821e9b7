// The whole source on scripted controllers: silence, failures, adapters that come and go.
import CBlueZ
import CLinux
import Configuration
import Glibc
import Host
import Queue
import Records
import SourceSupport
import StatusBoard
import Support
import Synchronization
import Testing

@testable import Beacons

@Suite struct SessionTests {
    private let report = Event.legacy(Event.legacyReport(Sample.iBeacon))

    /// Starts a source and waits until it scans.
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
        #expect(eventually { running.sink.sightings.count == 1 })
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
                    == "\(silent) 2 min, controller reset and reopened"
            }
        )
        pass(30, machine, running)
        #expect(
            eventually {
                running.board.loadedDetail == "\(silent) 3 min, the controller answers"
            }
        )
        // A quiet place is not an error; recovery waits for a while.
        pass(240, machine, running)
        #expect(
            eventually {
                running.board.loadedDetail == "\(silent) 7 min, the controller answers"
            }
        )
        #expect(scans(machine) == 4)
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 2 })
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        #expect(running.board.failure == nil)
    }

    /// Where there are no beacons, no good report comes that would end the error.
    @Test func recoveredController_isHealthy_withoutBeacons() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        let damaged = Array(report.dropLast(5))
        for (round, remedy) in ["scan restarted", "reset", "reopened"].enumerated() {
            for count in 1...4 {
                machine.clock.advance(by: .seconds(20))
                machine.current?.say(damaged)
                let dropped = round * 4 + count
                #expect(eventually { running.board.state.value?.dropped == dropped })
            }
            #expect(running.board.failure?.message.contains("nothing usable") == true)
            pass(20, machine, running)
            #expect(eventually { running.board.loadedDetail?.hasSuffix(remedy) == true })
        }
        #expect(machine.opened == [.restart, .reopen])
    }

    @Test func hungController_isAnError_andIsResetUntilItAnswers() throws {
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

    @Test func removedAdapter_isAnError_andResumesOnReturn() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.warn(.removed)
        #expect(eventually { running.board.failure != nil })
        #expect(
            running.board.failure?.message == "hci9: no such Bluetooth adapter; plug it in"
        )
        // It waits for a notification; a health check makes it look, too.
        let before = machine.opened.count
        running.adapter.checkHealth()
        #expect(eventually { machine.opened.count == before + 1 })
        machine.warn(.added)
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 1 })
    }

    /// The beacon's next report is complete and must not be appended to the unfinished one.
    @Test func partialReport_isNotJoinedToTheNext() throws {
        let machine = try Machine(.h4)
        let running = try run(machine)
        defer { end(running, machine) }
        let half = Array(Sample.ruuvi.prefix(9))
        machine.current?.say(Event.extended(Event.extendedReport(half, from: 1, status: 1)))
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 1 })
        machine.current?.end()
        let opened = machine.opened.count
        #expect(eventually { machine.opened.count > opened })
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        machine.current?.say(Event.extended(Event.extendedReport(Sample.ruuvi, from: 1)))
        #expect(eventually { running.sink.sightings.count == 2 })
        running.stop()
        #expect(running.sink.sightings.last?.telemetry.byKey["temperature_c"] == 2430)
        #expect(running.sink.all.losses.map(\.records) == [1])
    }

    @Test func adapterSwitchedOff_isSaid_andItIsOpenedAgain() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.warn(.down)
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
        #expect(eventually { running.sink.sightings.count == 1 })
        machine.clock.advance(by: .milliseconds(500))
        #expect(eventually { machine.opened == [.restart, .restart] })
        #expect(eventually { running.board.loadedDetail == "passive scan, legacy" })
        #expect(running.board.failure == nil)
    }

    /// Else a health tick that comes just then calls it lost, since hours ago.
    @Test func scanThatOthersEndAgainAndAgain_isNoAbsence() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        let absences = Locked(0)
        let subscription = running.board.subscribe { state in
            if case .loaded = state { return }
            absences.update { $0 += 1 }
        }
        for round in 1...3 {
            machine.current?.say(bytes("0C20 02 0000"), type: 1)
            machine.current?.say(report)
            #expect(eventually { running.sink.sightings.count == round })
            pass(5, machine, running)
            #expect(eventually { scans(machine) == round + 1 })
        }
        #expect(eventually { running.board.state.value?.restarts == 3 })
        withExtendedLifetime(subscription) { #expect(absences.value == 0) }
    }

    /// `hcitool lescan` that was killed: its scan goes on, and passes each beacon on once.
    @Test func scanThatHidesRepeats_isOursAgainAfterAMinute() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.current?.say(bytes("0C20 02 0101"), type: 1)
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 1 })
        // Phones that pass by: there is no silence that something could be done about.
        for second in 1...3 as ClosedRange<UInt64> {
            machine.clock.advance(by: .seconds(15))
            let other = Event.legacyReport(Sample.iBeacon(minor: UInt16(second)), from: second)
            machine.current?.say(Event.legacy(other))
            #expect(eventually { running.sink.sightings.count == 1 + Int(second) })
            running.adapter.checkHealth()
        }
        machine.clock.advance(by: .seconds(15))
        running.adapter.checkHealth()
        #expect(eventually { machine.opened == [.restart, .restart] })
        #expect(eventually { scans(machine) == 2 })
        #expect(running.board.failure == nil)
    }

    @Test func scanThatIsAnotherProgramsNow_isLeftOnAtTheEnd() throws {
        let machine = try Machine(.kernel)
        let running = try run(machine)
        defer { end(running, machine) }
        machine.current?.say(bytes("0C20 02 0101"), type: 1)
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 1 })
        running.stop()
        #expect(machine.current?.received.last == bytes("0C20 0100"))
    }

    @Test func whatIsHeardWhileOpening_isKept_andItsLossesCounted() throws {
        let machine = try Machine(.h4)
        machine.state.withLock { $0.early = [report, [0x3E, 3, 0x02, 9, 0]] }
        let running = try run(machine)
        defer { end(running, machine) }
        #expect(running.sink.sightings.count == 1)
        running.stop()
        #expect(running.sink.all.losses.map(\.records) == [1])
    }

    @Test func loss_isReportedOnce_andCounted() throws {
        let machine = try Machine(.h4)
        let running = try run(machine)
        defer { end(running, machine) }
        // An event that claims more than it has, in the middle of good ones.
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 1 })
        machine.clock.advance(by: .seconds(1))
        machine.current?.say([0x3E, 3, 0x02, 9, 0])
        machine.current?.say(report)
        #expect(eventually { running.sink.sightings.count == 2 })
        running.stop()
        #expect(running.sink.all.losses.map(\.records) == [1])
        #expect(running.sink.all.losses.map(\.kind) == [.missed])
        #expect(running.board.state.value?.dropped == 1)
    }

    // MARK: Cleanup at the end

    @Test(arguments: [(true, true, false), (true, false, true), (false, true, true)])
    func scan_isStoppedAtEnd_unlessOtherProgramsUseIt(
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
