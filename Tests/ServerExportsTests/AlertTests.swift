// The alerts that are sent, their times and repeats; the clock is advanced by hand.
import Foundation
import Host
import Support
import Testing

@testable import ServerExports
@testable import ServerIndex

private let minute: Int64 = 60_000
private let start: Int64 = 1_800_000_000_000

@Suite struct AlertTests {
    private let folder = TemporaryFolder()
    private let clock = ManualClock(
        Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: start))
    )
    private let stop: StopSignal
    private let reported = Locked([Alert]())
    private let logged = Locked([String]())

    init() throws { stop = try StopSignal() }

    /// A controller with one channel over the same book; `isWhole`: the index is complete.
    private func desk(
        isWhole: Bool = true,
        channel: AlertChannel? = nil,
        _ devices: @escaping (Int64) throws -> [DeviceState]
    ) throws -> AlertController {
        try AlertController(
            directory: folder.path,
            channels: [
                channel
                    ?? AlertChannel(name: "test") { [reported] alert, _, _ in
                        reported.update { $0.append(alert) }
                    }
            ],
            clock: clock,
            look: { (try devices($0), isWhole) },
            log: { [logged] line in logged.update { $0.append(line) } }
        )
    }

    /// Runs rounds until nothing is left to do, and returns the alerts sent in them.
    private func look(_ desk: AlertController, times: Int = 1, each pause: Duration = .seconds(10))
        throws
        -> [String]
    {
        reported.update { $0 = [] }
        for _ in 0..<times {
            clock.advance(by: pause)
            while try desk.round(until: stop) == .zero {}
        }
        return reported.value.map { "\($0.alert) \($0.deviceId)" }
    }

    private func state(
        _ id: String = "d1",
        heard: Int64,
        late: Bool = false,
        critical: [String] = [],
        lost: Int64 = 0,
        isRevoked: Bool = false
    ) -> DeviceState {
        DeviceState(
            id: id,
            lastSeen: start + heard * minute,
            late: late ? ["silent for 16 min"] : [],
            critical: critical,
            lost: lost,
            isRevoked: isRevoked
        )
    }

    /// A device that was healthy at first and then reported as late.
    private func lateDevice() throws -> (now: Locked<DeviceState>, desk: AlertController) {
        let now = Locked(state(heard: 0))
        let desk = try self.desk { _ in [now.value] }
        _ = try look(desk)
        now.update { $0 = state(heard: 0, late: true) }
        #expect(try look(desk) == ["late d1"])
        return (now, desk)
    }

    // MARK: When

    @Test func firstSight_isSilent_andAChangeIsReportedOnce() throws {
        let now = Locked([
            state(heard: 0), state("d2", heard: -600, late: true, critical: ["audio"], lost: 3),
        ])
        let desk = try self.desk { _ in now.value }
        #expect(try look(desk, times: 3).isEmpty)
        now.update { $0[0] = state(heard: 0, late: true, critical: ["audio is lost"], lost: 7) }
        #expect(try look(desk) == ["late d1", "losing d1", "critical d1"])
        #expect(
            reported.value.map(\.text) == [
                "d1 is late: silent for 16 min", "d1 is losing records: 7 lost in the last day",
                "d1 is critical: audio is lost",
            ]
        )
        #expect(try look(desk, times: 50).isEmpty)
    }

    @Test func lateDevice_isBackWhenItCameTwice() throws {
        let (now, desk) = try lateDevice()
        now.update { $0 = state(heard: 60) }
        #expect(try look(desk, times: 5).isEmpty)
        // A second batch of the same sync does not count as a second sync.
        now.update { $0.lastSeen += 20_000 }
        #expect(try look(desk, times: 5).isEmpty)
        now.update { $0 = state(heard: 62) }
        #expect(try look(desk) == ["back d1"])
        #expect(reported.value.first?.reason == "heard again after 1 h")
        #expect(try look(desk, times: 5).isEmpty)
    }

    @Test func lateDevice_isBackAfterAnHour_unlessSilentAgain() throws {
        let (now, desk) = try lateDevice()
        for heard in [5, 25, 45] as [Int64] {
            now.update { $0 = state(heard: heard) }
            #expect(try look(desk, times: 10, each: .seconds(60)).isEmpty)
            now.update { $0 = state(heard: heard, late: true) }
            #expect(try look(desk, times: 10, each: .seconds(60)).isEmpty)
        }
        // No longer late by the numbers does not mean that it was heard.
        now.update { $0 = state(heard: 45) }
        #expect(try look(desk, times: 120, each: .seconds(60)).isEmpty)
        now.update { $0 = state(heard: 185) }
        #expect(try look(desk, times: 58, each: .seconds(60)).isEmpty)
        #expect(try look(desk, times: 10, each: .seconds(60)) == ["back d1"])
    }

    @Test func flappingProblem_isReportedOnce_untilAnHourWithout() throws {
        let isThere = Locked(false)
        let desk = try self.desk { _ in
            [
                state(
                    heard: 0,
                    critical: isThere.value ? ["audio is lost"] : [],
                    lost: isThere.value ? 9 : 0
                )
            ]
        }
        _ = try look(desk)
        isThere.update { $0 = true }
        #expect(try look(desk) == ["losing d1", "critical d1"])
        for _ in 0..<20 {
            isThere.update { $0.toggle() }
            #expect(try look(desk, times: 6, each: .seconds(590)).isEmpty)
            isThere.update { $0 = true }
            #expect(try look(desk).isEmpty)
        }
        isThere.update { $0 = false }
        #expect(try look(desk, times: 2, each: .seconds(3600)).isEmpty)
        isThere.update { $0 = true }
        #expect(try look(desk) == ["losing d1", "critical d1"])
    }

    @Test func halfReadIndex_reportsSilenceOnly() throws {
        let devices = Locked([state(heard: 0)])
        _ = try look(try desk { _ in devices.value })
        devices.update {
            $0 = [
                state(heard: 0, late: true, critical: ["audio is lost"], lost: 5),
                state("new", heard: 0, critical: ["audio is lost"]),
            ]
        }
        #expect(try look(try desk(isWhole: false) { _ in devices.value }, times: 3) == ["late d1"])
        // The new device is first seen when all events are known.
        #expect(try look(try desk { _ in devices.value }) == ["losing d1", "critical d1"])
    }

    @Test func unreadableDevice_isEvaluatedBySilenceOnly() throws {
        let devices = Locked([state(heard: 0), state("d2", heard: 0)])
        let desk = try self.desk { _ in devices.value }
        _ = try look(desk)
        devices.update {
            $0[0].isWhole = false
            $0[0].critical = ["audio is lost"]
            $0[1].critical = ["audio is lost"]
        }
        #expect(try look(desk, times: 3) == ["critical d2"])
        devices.update { $0[0].late = ["silent for 16 min"] }
        #expect(try look(desk, times: 3) == ["late d1"])
        devices.update { $0[0].isWhole = true }
        #expect(try look(desk) == ["critical d1"])
    }

    @Test func revokedDevice_isForgotten() throws {
        let now = Locked(state(heard: 0))
        let desk = try self.desk { _ in [now.value] }
        _ = try look(desk)
        now.update { $0 = state(heard: 0, late: true, isRevoked: true) }
        #expect(try look(desk, times: 3).isEmpty)
        now.update { $0 = state(heard: 0, late: true) }
        #expect(try look(desk, times: 3).isEmpty)
    }

    /// A fleet with a one-minute interval, after the receiver was down for two days.
    @Test func receiverThatWasAway_callsNobodyLateWhoCouldNotCome() {
        let hour = 60 * minute
        let listening = ListeningTime(start: start, heardBefore: start - 48 * hour)
        let healthy = start - 48 * hour - minute
        for after in [0, 1, 3, 5] as [Int64] {
            #expect(!listening.isLate(since: healthy, interval: 60, at: start + after * minute))
        }
        #expect(listening.isLate(since: healthy, interval: 60, at: start + 7 * minute))
        // Late before, and still late.
        #expect(listening.isLate(since: start - 49 * hour, interval: 60, at: start))
        // Heard since.
        #expect(!listening.isLate(since: start + minute, interval: 60, at: start + 4 * minute))
        #expect(listening.isLate(since: start + minute, interval: 60, at: start + 5 * minute))
    }

    /// A virtual machine that was paused for a day, and a clock that is set back by as much.
    @Test func clockThatSteps_makesNobodyLate_andHidesNobody() {
        let day = 24 * 60 * minute
        var listening = ListeningTime(start: start, heardBefore: 0)
        func look(_ after: Int64, step: Int64 = 0) -> Int64 {
            listening.look(at: start + after * minute + step, running: after * minute)
            return start + after * minute + step
        }
        func isLate(_ last: Int64, _ now: Int64) -> Bool {
            listening.isLate(since: last, interval: 60, at: now)
        }
        // Slewed, not stepped.
        let heard = look(60)
        #expect(!isLate(heard, look(62, step: 2000)))
        #expect(isLate(heard, look(64, step: 2000)))
        // Gateways take as long to return as after a stop.
        let again = look(65, step: 2000)
        #expect(!isLate(again, look(67, step: day)))
        #expect(!isLate(again, look(71, step: day)))
        #expect(isLate(again, look(74, step: day)))
        let ahead = look(75, step: day)
        #expect(!isLate(ahead, look(76)))
        #expect(isLate(ahead, look(80)))
        #expect(!isLate(look(80), look(82)))
    }

    // MARK: Until it is sent

    @Test func reportedAlerts_outliveARestart_asDoPendingOnes() throws {
        let now = Locked(state(heard: 0))
        _ = try look(try desk { _ in [now.value] })
        now.update { $0 = state(heard: 0, late: true) }
        let channel = AlertChannel(name: "test") { _, _, _ in throw Failure("no") }
        let failing = try desk(channel: channel) { _ in [now.value] }
        #expect(try look(failing, times: 3).isEmpty)
        #expect(try look(try desk { _ in [now.value] }) == ["late d1"])
        #expect(try look(try desk { _ in [now.value] }, times: 3).isEmpty)
    }

    @Test func channelThatFails_isTriedLessAndLessOften() throws {
        let now = Locked(state(heard: 0))
        let tries = Locked([Int64]())
        let channel = AlertChannel(name: "test") { [clock] _, _, _ in
            tries.update { $0.append(clock.now().milliseconds / 1000) }
            throw Failure("no")
        }
        let desk = try self.desk(channel: channel) { _ in [now.value] }
        _ = try look(desk)
        now.update { $0 = state(heard: 0, late: true) }
        _ = try look(desk, times: 4000, each: .seconds(1))
        let pauses = zip(tries.value.dropFirst(), tries.value).map { $0 - $1 }
        #expect(pauses == [15, 30, 60, 120, 240, 480, 900, 900, 900])
        #expect(logged.value.count == tries.value.count)
    }

    /// Makes writes of a kind fail like on a full disk; "" ends it.
    ///
    /// The error is abs() of the smallest integer, which SQLite does not treat as damage.
    private func fail(_ changes: String) throws {
        let script = """
            import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.executescript("".join(
            "DROP TRIGGER IF EXISTS %s_%s;" % (change, table) + ("" if change not in sys.argv[2] else
            "CREATE TRIGGER %s_%s BEFORE %s ON %s BEGIN SELECT abs(-9223372036854775807 - 1); END;" % (change, table, change, table))
            for change in ("INSERT", "DELETE") for table in ("pending", "marks")))
            """
        let book = AlertBook.path(in: folder.path)
        let outcome = try Process.run("/usr/bin/python3", ["-c", script, book, changes])
        #expect(outcome.status == 0)
    }

    /// All devices of a site fall silent at once, and one channel takes 25 s per alert.
    @Test func channelThatIsSlow_holdsTheOtherUpOnce() throws {
        let (clock, quick) = (clock, Locked<[BootInstant]>([]))
        let slow = Locked(0)
        let isLate = Locked(false)
        let desk = try AlertController(
            directory: folder.path,
            channels: [
                AlertChannel(name: "slow") { _, _, _ in
                    clock.advance(by: .seconds(25))
                    slow.update { $0 += 1 }
                },
                AlertChannel(name: "quick") { _, _, _ in
                    quick.update { $0.append(clock.now()) }
                },
            ],
            clock: clock,
            look: { _ in
                ((0..<20).map { self.state("d\($0)", heard: 1, late: isLate.value) }, true)
            },
            log: { _ in }
        )
        _ = try desk.round(until: stop)
        isLate.update { $0 = true }
        clock.advance(by: .seconds(10))
        let begun = clock.now()
        while slow.value < 20 { _ = try desk.round(until: stop) }
        #expect(quick.value.count == 20)
        #expect(quick.value.allSatisfy { $0 - begun <= .seconds(25) })
    }

    /// An alert is sent but cannot be deleted: it is not sent again and blocks no other.
    @Test func undeletableAlert_isSentOnce_andBlocksNoOther() throws {
        let devices = Locked(["d1", "d2", "d3"].map { state($0, heard: 0) })
        let desk = try self.desk { _ in devices.value }
        _ = try look(desk)
        devices.update { $0 = $0.map { state($0.id, heard: 0, late: $0.id != "d3") } }
        try fail("DELETE")
        #expect(try look(desk).sorted() == ["late d1", "late d2"])
        devices.update { $0 = $0.map { state($0.id, heard: 0, late: true) } }
        #expect(try look(desk, times: 5, each: .seconds(60)) == ["late d3"])
        try fail("")
        #expect(try look(desk, times: 3, each: .seconds(60)).isEmpty)
        devices.update { $0[0] = state("d1", heard: 5, critical: ["audio is lost"]) }
        #expect(try look(desk) == ["critical d1"])
        #expect(try look(try self.desk { _ in devices.value }, times: 3).isEmpty)
    }

    /// When nothing can be stored all devices become late: an alert has to go out, once.
    @Test func bookThatTakesNothing_holdsUpNoAlert() throws {
        let devices = Locked(["d1", "d2"].map { state($0, heard: 0) })
        let desk = try self.desk { _ in devices.value }
        _ = try look(desk)
        try fail("INSERT DELETE")
        devices.update { $0 = $0.map { state($0.id, heard: 0, late: true) } }
        #expect(try look(desk, times: 3).sorted() == ["late d1", "late d2"])
        #expect(logged.value.count == 1)
        devices.update { $0[0] = state("d1", heard: 5) }
        #expect(try look(desk).isEmpty)
        devices.update { $0[0] = state("d1", heard: 7) }
        #expect(try look(desk) == ["back d1"])
        try fail("")
        #expect(try look(desk, times: 3).isEmpty)
        // The alerts sent while it was full survive a restart from now on.
        #expect(try look(try self.desk { _ in devices.value }, times: 3).isEmpty)
    }

    /// An unsent alert is stored in the book once that works again.
    @Test func whatWaitsInMemory_isWrittenOnceItCanBe() throws {
        let now = Locked(state(heard: 0))
        let channel = AlertChannel(name: "test") { _, _, _ in throw Failure("no") }
        let failing = try self.desk(channel: channel) { _ in [now.value] }
        _ = try look(failing)
        try fail("INSERT")
        now.update { $0 = state(heard: 0, late: true) }
        #expect(try look(failing, times: 3).isEmpty)
        try fail("")
        _ = try look(failing)
        #expect(try look(try desk { _ in [now.value] }) == ["late d1"])
    }
}
