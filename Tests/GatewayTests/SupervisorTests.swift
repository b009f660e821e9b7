import Foundation
import Host
import Queue
import QueueSupport
import Records
import Setup
import StatusBoard
import Support
import Testing

@testable import Daemon
@testable import Status

@Suite struct PartHealthTests {
    private func at(_ seconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: seconds * 1_000_000_000)
    }

    private func word(_ call: StaticString, since: Int64, due: Int64?) -> Heartbeat.Word {
        Heartbeat.Word(call: call, since: at(since), due: due.map { at($0) })
    }

    private func evaluate(
        _ health: inout PartHealth,
        _ word: Heartbeat.Word?,
        at seconds: Int64
    ) -> PartHealth.Verdict {
        health.evaluate(word, at: at(seconds), patience: .seconds(30))
    }

    @Test func waitThatWasDeclared_isNoHang_howeverLong() {
        var health = PartHealth()
        #expect(evaluate(&health, word("poll", since: 0, due: nil), at: 100_000) == .asBefore)
        #expect(evaluate(&health, word("poll", since: 0, due: 600), at: 628) == .asBefore)
        #expect(evaluate(&health, nil, at: 100_000) == .asBefore)
        #expect(
            evaluate(&health, word("poll", since: 0, due: 600), at: 630)
                == .hangs(call: "poll", for: .seconds(30))
        )
    }

    @Test func hang_isReportedOnce_untilItMoves() {
        var health = PartHealth()
        let hung = word("snd_pcm_readi", since: 0, due: 0)
        #expect(
            evaluate(&health, hung, at: 31) == .hangs(call: "snd_pcm_readi", for: .seconds(31))
        )
        #expect(evaluate(&health, hung, at: 61) == .asBefore)
        #expect(evaluate(&health, word("poll", since: 62, due: 70), at: 91) == .isBack)
        #expect(evaluate(&health, word("poll", since: 62, due: 70), at: 92) == .asBefore)
    }

    @Test func newRun_isOnTrial_andStartedAtMostThricePerHour() {
        var health = PartHealth()
        for time: Int64 in [31, 62, 93] {
            let hung = word("ioctl", since: time - 31, due: time - 31)
            #expect(evaluate(&health, hung, at: time) == .hangs(call: "ioctl", for: .seconds(31)))
            let mayRecover = health.mayRecover(at: at(time))
            #expect(mayRecover)
        }
        let isTooMuch = !health.mayRecover(at: at(94))
        #expect(isTooMuch)
        let alive = word("poll", since: 100, due: nil)
        #expect(evaluate(&health, alive, at: 123) == .asBefore)
        #expect(evaluate(&health, alive, at: 152) == .asBefore)
        #expect(evaluate(&health, alive, at: 153) == .isBack)
        let isAllowedLater = health.mayRecover(at: at(3700))
        #expect(isAllowedLater)
    }

    @Test func respondingPart_isNotLost_thoughItsDeviceIsGone() {
        var health = PartHealth()
        #expect(evaluate(&health, word("ioctl", since: 0, due: 0), at: 30) != .asBefore)
        let mayRecover = health.mayRecover(at: at(30))
        #expect(mayRecover)
        #expect(evaluate(&health, word("poll", since: 90, due: 95), at: 90) == .isBack)
        #expect(!health.isLost(at: at(1000), patience: .seconds(30)))
    }

    @Test func partHungForTenTimeouts_isLost_acrossItsRuns() {
        var health = PartHealth()
        #expect(evaluate(&health, word("connect", since: 0, due: 0), at: 30) != .asBefore)
        #expect(evaluate(&health, word("connect", since: 250, due: 250), at: 299) != .asBefore)
        #expect(!health.isLost(at: at(299), patience: .seconds(30)))
        #expect(health.isLost(at: at(300), patience: .seconds(30)))
    }
}

@Suite struct SupervisorTests {
    @Test func suspend_isReportedOnce_withItsLength() {
        let (clock, reported) = (ManualClock(testStart), StateBox<[Duration]>([]))
        let supervisor = Supervisor(
            [],
            patience: .seconds(30),
            interval: .seconds(15),
            clock: clock,
            errors: ErrorLog(),
            log: Log(level: .error)
        ) { from, to in
            #expect(to.boot == clock.now())
            reported.update { $0.append(to.boot - from.boot) }
        }
        clock.suspend(for: .seconds(50))
        for length in [0, 15, 0, 0.9, 7200] {
            clock.advance(by: .seconds(15))
            #expect(supervisor.check())
            clock.suspend(for: .seconds(length))
        }
        #expect(supervisor.check())
        #expect(supervisor.check())
        #expect(reported.value == [.seconds(15), .seconds(7200)])
    }

    /// Time in suspend does not count as waiting, because `poll` does not count it.
    @Test func waits_excludeSuspend_andHangsAreStillDetected() {
        let clock = ManualClock(
            testStart
        )
        let start = clock.now()
        let errors = ErrorLog()
        let word = Heartbeat.Word(call: "poll", since: start, due: start + .seconds(60))
        let supervisor = Supervisor(
            [Supervisor.Part(name: "waits", word: { word })],
            patience: .seconds(30),
            interval: .seconds(15),
            clock: clock,
            errors: errors,
            log: Log(level: .error)
        )
        func ticks(_ count: Int) {
            for _ in 0..<count {
                clock.advance(by: .seconds(15))
                #expect(supervisor.check())
            }
        }
        ticks(1)
        clock.advance(by: .seconds(7200))
        // The thread wakes up 45 s after the machine.
        ticks(4)
        #expect(errors.entries.isEmpty)
        ticks(4)
        #expect(
            errors.entries.map(\.failure.message).first?.hasPrefix(
                "waits: no heartbeat for "
            ) == true
        )
    }
}

@Suite struct OutletTests {
    private final class TemporaryQueue {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let queue: Queue

        init() throws {
            let path = temporary.path + "/queue.sqlite"
            queue = try Queue(at: path)
        }

        deinit {
            queue.close()
        }
    }

    @Test func threadThatWasCutOff_changesNothingAnyMore() throws {
        let folder = try TemporaryQueue()
        let target = Publisher<SourceReport>()
        let outlet = QueueSink(folder.queue, target)
        outlet.board.loaded(SourceReport(device: "before"))
        outlet.cut()
        outlet.board.loaded(SourceReport(device: "after"))
        #expect(target.state.value?.device == "before")
        let stamp = SystemClock().stamp()
        let fix = Fix(stamp: stamp, mode: .threeDimensional, latitude: 46, longitude: 6)
        #expect(!outlet.accept(fix))
    }

    /// A restart, a reload or a hung run does not reset the source's counters.
    @Test func nextRun_goesOnWithTheCounters() throws {
        let folder = try TemporaryQueue()
        let target = Publisher<SourceReport>()
        let heard = SystemClock().stamp()
        var report = SourceReport(device: "hci0")
        (report.records, report.dropped, report.restarts) = (5, 2, 1)
        report.lastRecordAt = heard
        let first = QueueSink(folder.queue, target)
        first.board.loaded(report)
        first.cut()
        let second = QueueSink(folder.queue, target)
        second.board.loading()
        #expect(target.state.value == report)
        second.board.loaded(SourceReport(device: "hci1"))
        #expect(target.state.value?.device == "hci1")
        #expect(target.state.value?.lastRecordAt == heard)
        second.board.publish(.error(Failure("gone"), previous: report))
        let sum = try #require(target.state.value)
        #expect(sum.records == 10)
        #expect(sum.dropped == 4)
        #expect(sum.restarts == 2)
        second.cut()
        let third = QueueSink(folder.queue, target)
        third.board.loaded(report)
        #expect(target.state.value?.records == 15)
    }

    /// The source may hear nothing in the meantime; its effort ends all the same.
    @Test func diskThatOthersFill_failsTheSource_untilThereIsRoom() throws {
        let temporary = TemporaryFolder()
        let free = Locked<Int64>(1_000_000_000)
        let queue = try Queue(at: temporary.path + "/queue.sqlite") {
            $0.freeSpace = { _ in free.value }
        }
        defer { queue.close() }
        let (target, noted) = (Publisher<SourceReport>(), Locked<[SourceEffort]>([]))
        let note: @Sendable (SourceEffort) -> Void = { effort in
            noted.update { $0.append(effort) }
        }
        let sink = QueueSink(queue, target, onEffort: note)
        sink.board.loaded(SourceReport(device: "hci0"))
        let fix = Fix(
            stamp: SystemClock().stamp(),
            mode: .threeDimensional,
            latitude: 46,
            longitude: 6
        )
        func become(_ bytes: Int64) throws {
            free.update { $0 = bytes }
            queue.checkStorage()
            _ = try queue.flushed()
        }
        try become(1_000_000)
        guard case .error(let failure, let report) = target.state else {
            Issue.record("\(target.state)")
            return
        }
        #expect(failure.code == .storageFull)
        #expect(report?.device == "hci0")
        #expect(!sink.accept(fix))
        try become(1_000_000_000)
        guard case .loaded = target.state else {
            Issue.record("\(target.state)")
            return
        }
        #expect(sink.accept(fix))
        #expect(noted.value == [.listening, .failed("space: \(failure.message)"), .listening])
    }

    @Test func trialRun_isReported_onlyOnceItIsTrusted() throws {
        let folder = try TemporaryQueue()
        let target = Publisher<SourceReport>()
        target.failed(Failure("hangs"))
        let outlet = QueueSink(folder.queue, target, isOnTrial: true)
        outlet.board.loaded(SourceReport(device: "new"))
        #expect(target.state.value == nil)
        outlet.endTrial()
        #expect(target.state.value?.device == "new")
    }

    @Test func runOnTrial_thatFailsAnotherWay_saysSo() throws {
        let folder = try TemporaryQueue()
        let target = Publisher<SourceReport>()
        target.failed(Failure("hangs"))
        let outlet = QueueSink(folder.queue, target, isOnTrial: true)
        outlet.board.failed(Failure("is gone"))
        guard case .error(let failure, _) = target.state else {
            Issue.record("\(target.state)")
            return
        }
        #expect(failure.message == "is gone")
    }
}
