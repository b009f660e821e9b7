// Audio missing in earlier windows, reported when the source starts again.
import Audio
import Configuration
import Host
import Location
import Queue
import QueueSupport
import Records
import Schedule
import Setup
import Status
import StatusBoard
import Support
import Testing
import Upload

@testable import Daemon

@Suite struct MissedWindowTests {
    private let folder = TemporaryFolder()
    private let board = GatewayBoard()
    private let clock = ManualClock(Self.start)

    /// 05:00 UTC, an hour after boot.
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 3_600_000_000_000),
        wall: WallTime(rfc3339: "2027-01-01T05:00:00Z") ?? WallTime(milliseconds: 0)
    )

    private func at(_ seconds: Int) -> Stamp { Self.start.advanced(by: .seconds(seconds)) }

    /// Ten minutes of each hour are due, and the clock is right.
    private func schedule(_ queue: Queue) throws -> (SourceSchedule, Configuration) {
        let now = clock.stamp()
        try queue.perform { try $0.recordClock(now, synced: true) }
        var configuration = Configuration()
        configuration.schedules.audioDuty = try DutyCycle.parse("10m/1h").get()
        let log = Log(level: .error)
        return (try SourceSchedule(queue, board, clock: clock, log: log), configuration)
    }

    private func sink(_ queue: Queue, _ schedule: SourceSchedule?) -> QueueSink {
        QueueSink(queue, Publisher<SourceReport>(), schedule: schedule)
    }

    private func record(_ queue: Queue, _ from: Int, seconds: Int) {
        let run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 8000, device: "mic")
        queue.begin(run)
        queue.accept(
            Segment(
                run: run.id,
                frames: seconds * 8000,
                start: at(from),
                meanSquare: 0,
                data: [1]
            )
        )
        queue.end(run: run.id)
    }

    private func times(_ missed: [DueTime]) -> [Int] {
        missed.flatMap { [$0.from, $0.to] }
            .map { Int((($0.boot - Self.start.boot).inSeconds).rounded()) }
    }

    @Test func closedWindow_missesWhatCameAfterItsLastAudio() throws {
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        record(queue, 0, seconds: 600)
        AudioMemo(.closed(at(600)), due: at(0)).keep(in: queue)
        #expect(sink(queue, nil).missedAudio() == [])
        #expect(sink(queue, nil).endOfAudio() == nil)
        // The microphone was unplugged in the whole next window, then for its last part.
        AudioMemo(.closed(at(4200)), due: at(3600)).keep(in: queue)
        #expect(times(sink(queue, nil).missedAudio()) == [3600, 4200])
        record(queue, 7200, seconds: 60)
        AudioMemo(.closed(at(7800)), due: at(7200)).keep(in: queue)
        #expect(times(sink(queue, nil).missedAudio()) == [7260, 7800])
    }

    /// No microphone since boot: there is no audio at all.
    @Test func windowWithoutAnyAudio_isMissed_inThisBootOnly() throws {
        let queue = try folder.queue(clock: clock)
        AudioMemo(.closed(at(600)), due: at(0)).keep(in: queue)
        #expect(times(sink(queue, nil).missedAudio()) == [0, 600])
        queue.close()
        let next = try folder.queue(bootID: "another", clock: clock)
        defer { next.close() }
        #expect(sink(next, nil).missedAudio() == [])
        #expect(sink(next, nil).endOfAudio() == nil)
    }

    /// The process was killed in a window: the rest of it is missing, the next one, and the
    /// beginning of the present one.
    @Test func killedProcess_missesWhatWasDue_andNotThePauses() throws {
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        record(queue, 0, seconds: 300)
        AudioMemo(.on, due: at(0)).keep(in: queue)
        clock.advance(by: .seconds(7500))
        let (schedule, configuration) = try schedule(queue)
        _ = schedule.look(configuration)
        let sink = sink(queue, schedule)
        #expect(times(sink.missedAudio()) == [300, 600, 3600, 4200])
        #expect(sink.endOfAudio()?.boot == at(7200).boot)
        // In a pause nothing is due.
        clock.advance(by: .seconds(600))
        #expect(times(sink.missedAudio()) == [300, 600, 3600, 4200, 7200, 7800])
        #expect(sink.endOfAudio() == nil)
        // Without a schedule all of it is missing.
        _ = schedule.look(Configuration())
        #expect(sink.missedAudio() == [])
        #expect(sink.endOfAudio()?.boot == at(300).boot)
    }

    private func context(_ queue: Queue, _ schedule: SourceSchedule) throws -> ServiceContext {
        ServiceContext(
            queue: queue,
            board: board,
            budget: DayBudget(queue, clock: clock),
            clock: clock,
            clockWatch: try ClockMonitor(queue: queue, clock: clock) { _ in true },
            schedule: schedule,
            deviceID: "device",
            version: "test",
            environment: [:],
            log: Log(level: .error),
            sound: try AudioTap()
        )
    }

    /// Suspended in one window, awake in the next.
    @Test func pauseThatPassedInASuspend_isInTheAccount() throws {
        let queue = try folder.queue(clock: clock)
        let (schedule, _) = try schedule(queue)
        let context = try context(queue, schedule)
        var settings = LocationSettings()
        settings.gpsd = HostPort(host: "127.0.0.1", port: 1)
        let window = DeviceWindow(opens: at(0), wasPlanned: true, closes: at(595).boot)
        let order = SourceOrder(.location(settings), window)
        let run = try SourceRun(order, context, tap: nil)
        // The account begins with it.
        try waitUntil("a refused connection") {
            if case .error? = board.sources[.location]?.state { true } else { false }
        }
        // Nothing is sealed yet.
        clock.advance(by: .seconds(600))
        let next = DeviceWindow(opens: at(598), wasPlanned: true, closes: nil)
        run.obey(.run(next), context)
        #expect(run.hasClosed)
        _ = run.stop(by: SystemClock().now() + .seconds(5))
        let account = try account(queue, "location")
        #expect(account.times == [0, 595, 598])
        #expect(account.states == ["failed", "scheduled_off", "failed"])
    }

    /// Returns what the effort account of a source holds: seconds and states.
    private func account(_ queue: Queue, _ source: String) throws -> (
        times: [Double], states: [String]
    ) {
        queue.close()
        let stored = try folder.queue(bootID: "next", clock: clock)
        defer { stored.close() }
        let lines = (stored.remembered("effort") ?? "").split(separator: "\n")
            .drop { !$0.hasPrefix("\(source) ") }.dropFirst()
        let words = lines.map { $0.split(separator: " ") }
        let times = words.map { (Int64($0[1]) ?? 0) - Self.start.boot.nanoseconds }
        return (times.map { Double($0) / 1e9 }, words.map { String($0[3]) })
    }

    /// A microphone is opened two seconds before its window, and is absent then.
    @Test func failureBeforeAWindow_isChargedFromItsStartOn() throws {
        let queue = try folder.queue(clock: clock)
        let (schedule, _) = try schedule(queue)
        let context = try context(queue, schedule)
        let window = DeviceWindow(opens: at(2), wasPlanned: true, closes: nil)
        let settings = AudioSettings { $0.devices = ["hw:99"] }
        let run = try SourceRun(SourceOrder(.audio(settings), window), context, tap: nil)
        try waitUntil("an absent microphone") {
            if case .error? = board.sources[.audio]?.state { true } else { false }
        }
        _ = run.stop(by: SystemClock().now() + .seconds(5))
        let account = try account(queue, "audio")
        #expect(account.times == [2] && account.states == ["failed"], "\(account)")
    }

    /// The process was stopped in one window, and goes on in the pause after three others.
    @Test func unnoticedWindows_areMissed_butTheirPausesAreNot() throws {
        let queue = try folder.queue(clock: clock)
        let (schedule, _) = try schedule(queue)
        let context = try context(queue, schedule)
        let window = DeviceWindow(opens: at(0), wasPlanned: true, closes: at(1).boot)
        let settings = AudioSettings { $0.devices = ["hw:99"] }
        let run = try SourceRun(SourceOrder(.audio(settings), window), context, tap: nil)
        try waitUntil("an absent microphone") {
            if case .error? = board.sources[.audio]?.state { true } else { false }
        }
        // Nothing is sealed yet.
        clock.advance(by: .seconds(8))
        let passed = [2, 4, 6].map { DueTime(from: at($0), to: at($0 + 1)) }
        run.obey(.rests(at(7)), passed: passed, context)
        #expect(AudioMemo(queue)?.state == .closed(at(1)))
        _ = run.stop(by: SystemClock().now() + .seconds(5))
        let account = try account(queue, "audio")
        #expect(account.times == [0, 1, 2, 3, 4, 5, 6, 7], "\(account)")
        let states = Array(repeating: ["failed", "scheduled_off"], count: 4).flatMap { $0 }
        #expect(account.states == states)
    }

    @Test func windowThatPassedInASuspend_isMissedOnce() throws {
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        let (schedule, configuration) = try schedule(queue)
        _ = schedule.look(configuration)
        clock.advance(by: .seconds(7300))
        let missed = schedule.look(configuration).missed
        #expect(times(missed[.audio] ?? []) == [3600, 4200])
        let sink = sink(queue, schedule)
        #expect(times(sink.missedAudio()) == [3600, 4200])
        #expect(sink.missedAudio() == [])
    }
}
