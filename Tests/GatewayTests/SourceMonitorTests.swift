// Tests when a source is lost and when it is back.
import Host
import Queue
import QueueSupport
import Records
import Setup
import StatusBoard
import Support
import Testing
import Upload

@testable import Daemon
@testable import Status

@Suite struct SourceHealthTests {
    /// The state of a source, by seconds after the start.
    enum Step: Sendable {
        case loading
        case loaded
        case error(String)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// In chronological order.
        var steps: [(at: Int, does: Step)]
        /// Verdicts by the tick (every 30 s) that gives them.
        var verdicts: [Int: String]
    }

    static let cases = [
        Case(
            testDescription: "comes up within a tick: never lost",
            steps: [(1, .loading), (29, .loaded)],
            verdicts: [:]
        ),
        Case(
            testDescription:
                "fails at first, comes up within a tick: never lost, the failure is closed",
            steps: [(1, .loading), (2, .error("no")), (20, .loading), (25, .loaded)],
            verdicts: [60: "brief 1–25 no"]
        ),
        Case(
            testDescription: "does not come up: lost, with the newest reason",
            steps: [(1, .loading), (2, .error("first")), (12, .loading), (13, .error("second"))],
            verdicts: [60: "lost 1 second"]
        ),
        Case(
            testDescription: "starts for ever: lost without a reason",
            steps: [(1, .loading)],
            verdicts: [60: "lost 1 -"]
        ),
        Case(
            testDescription: "gone between two ticks: not lost",
            steps: [(1, .loaded), (65, .error("gone")), (85, .loaded)],
            verdicts: [120: "brief 65–85 gone"]
        ),
        Case(
            testDescription: "gone and back: lost once, recovered once it has worked for a tick",
            steps: [
                (1, .loaded), (100, .error("gone")), (110, .loading), (111, .error("gone")),
                (200, .loaded),
            ],
            verdicts: [150: "lost 100 gone", 240: "recovered 100–200 gone"]
        ),
        Case(
            testDescription: "comes and goes, and works at each tick: never lost",
            steps: (0..<20).flatMap { round in
                [(91 + 10 * round, .error("flaps")), (95 + 10 * round, .loaded)]
            },
            verdicts: [330: "brief 91–285 flaps"]
        ),
        Case(
            testDescription: "comes and goes, down at a tick: lost once, recovered when it stays",
            steps: (0..<9).flatMap { round in
                [(85 + 30 * round, .error("flaps")), (95 + 30 * round, .loaded)]
            },
            verdicts: [120: "lost 85 flaps", 390: "recovered 85–335 flaps"]
        ),
        Case(
            testDescription: "lost twice: told twice",
            steps: [
                (1, .loaded), (10, .error("one")), (70, .loaded), (150, .error("two")),
                (220, .loaded),
            ],
            verdicts: [
                60: "lost 10 one", 120: "recovered 10–70 one", 180: "lost 150 two",
                270: "recovered 150–220 two",
            ]
        ),
    ]

    private static func stamp(_ second: Int) -> Stamp {
        Stamp(
            boot: BootInstant(nanoseconds: Int64(second) * 1_000_000_000),
            wall: WallTime(milliseconds: Int64(second) * 1000)
        )
    }

    private static func words(_ verdict: SourceHealth.Verdict) -> String {
        func span(_ absence: SourceHealth.Absence) -> String {
            let since = absence.since.wall.milliseconds / 1000
            let until = absence.until.map { "–\($0.wall.milliseconds / 1000)" } ?? ""
            return "\(since)\(until) \(absence.failure?.message ?? "-")"
        }
        return switch verdict {
        case .lost(let absence): "lost \(span(absence))"
        case .recovered(let absence): "recovered \(span(absence))"
        case .brief(let absence): "brief \(span(absence))"
        }
    }

    @Test(arguments: cases)
    func source_isLostAndBackOnce(_ test: Case) {
        var health = SourceHealth()
        var verdicts: [Int: String] = [:]
        for second in 0...420 {
            for step in test.steps where step.at == second {
                _ = health.record(Self.state(step.does), at: Self.stamp(second))
            }
            guard second % 30 == 0 else { continue }
            let now = Self.stamp(second).boot
            if let verdict = health.evaluate(at: now, patience: .seconds(30)) {
                verdicts[second] = Self.words(verdict)
            }
        }
        #expect(verdicts == test.verdicts)
    }

    private static func state(_ step: Step) -> BoardState<SourceReport> {
        let report = SourceReport(device: "d")
        return switch step {
        case .loading: .loading(previous: report)
        case .loaded: .loaded(report)
        case .error(let words): .error(Failure(words), previous: report)
        }
    }

    @Test func onlyTheFirstFailure_isNews() {
        var health = SourceHealth()
        let steps: [(Step, Bool)] = [
            (.loading, false), (.error("a"), true), (.loading, false), (.error("b"), false),
            (.loaded, false), (.error("c"), false),
        ]
        for (step, isNews) in steps {
            #expect(health.record(Self.state(step), at: Self.stamp(1)) == isNews)
        }
    }
}

@Suite struct SourceWatchTests {
    private let clock = ManualClock(
        Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 1_800_000_000_000))
    )
    private let board = GatewayBoard()
    private let events = StateBox([Event]())

    private func watch() -> SourceMonitor {
        let events = events
        return SourceMonitor(
            board,
            clock: clock,
            patience: .seconds(30),
            log: Log(level: .error)
        ) { event in events.update { $0.append(event) } }
    }

    /// Runs `count` ticks of the health timer.
    private func ticks(_ count: Int, _ watch: SourceMonitor) {
        for _ in 0..<count {
            clock.advance(by: .seconds(30))
            watch.check()
        }
    }

    @Test func absenceEvents_giveStartReasonAndDuration() throws {
        let watch = watch()
        let location = try #require(board.sources[.location])
        var report = SourceReport(device: "localhost:2947")
        location.loaded(report)
        ticks(2, watch)
        #expect(events.value.isEmpty)
        let since = clock.wall()
        location.failed(Failure("gpsd hung up", code: .permission))
        ticks(2, watch)
        report.restarts = 3
        location.loaded(report)
        let until = clock.wall()
        ticks(3, watch)
        let reported = events.value
        #expect(reported.map(\.kind) == [.sourceLost, .sourceRecovered])
        #expect(reported.allSatisfy { $0.source == "location" })
        let expected: [[(String, EventValue)]] = [
            [
                ("since", .seen(since)), ("reason", .text("gpsd hung up")),
                ("code", .text("E005")), ("device", .text("localhost:2947")),
            ],
            [
                ("away_s", .number(60)), ("since", .seen(since)), ("until", .seen(until)),
                ("restarts", .integer(3)), ("device", .text("localhost:2947")),
            ],
        ]
        for (event, detail) in zip(reported, expected) {
            #expect(event.detail.elementsEqual(detail, by: ==))
        }
        #expect(
            board.errors.entries.reversed().map(\.failure) == [
                Failure("gpsd hung up", code: .permission)
            ]
        )
    }

    /// A board without an RTC: the microphone is missing at the start, and the time is known later.
    @Test func absenceBeforeClockSync_isDatedByCurrentClock() throws {
        let right = clock.wall()
        clock.stepWall(to: WallTime(milliseconds: 5000))
        let watch = watch()
        let audio = try #require(board.sources[.audio])
        audio.failed(Failure("no such device"))
        clock.advance(by: .seconds(10))
        clock.stepWall(to: right + .seconds(10))
        ticks(2, watch)
        audio.loaded(SourceReport(device: "mic"))
        ticks(2, watch)
        let since = events.value.flatMap(\.detail).filter { $0.key == "since" }.map(\.value)
        #expect(since == [.seen(right), .seen(right)])
    }

    /// The board was off for the night, or its clock shows local time; a GNSS receiver gives the
    /// time before or after.
    @Test(arguments: [-8, 8, -200_000], [false, true])
    func longAbsence_isDatedRight_whereTheClockIsWrong(hours: Int, isKnownBefore: Bool) throws {
        let (folder, right) = (TemporaryFolder(), clock.stamp())
        clock.stepWall(to: right.wall + .seconds(hours * 3600))
        let path = folder.path + "/q"
        let queue = try Queue(at: path, clock: clock)
        defer { queue.close() }
        let setClock = { try queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) } }
        if isKnownBefore { try setClock() }
        let watch = SourceMonitor(
            board,
            clock: clock,
            patience: .seconds(30),
            log: Log(level: .error)
        ) { queue.accept($0) }
        board.sources[.audio]?.failed(Failure("no such device"))
        ticks(600, watch)
        board.sources[.audio]?.loaded(SourceReport(device: "mic"))
        ticks(2, watch)
        if !isKnownBefore { try setClock() }
        try queue.flushed()
        var reported: [String] = []
        let events = try RecordSource(reader: queue.reader(), clockMap: .max)
        try events.forEach(.events, 1...2) { _, json in
            reported.append(String(decoding: json, as: UTF8.self))
            return true
        }
        let since = "\"since\":\"\(right.wall.rfc3339)\""
        let until = "\"until\":\"\((right.wall + .seconds(5 * 3600)).rfc3339)\""
        #expect(reported.count == 2 && reported.allSatisfy { $0.contains(since) }, "\(reported)")
        #expect(reported.last?.contains(until) == true, "\(reported)")
    }

    @Test func sourceThatHangs_isLostAtOnce_sinceItWasHeardOfLast() throws {
        let watch = watch()
        let audio = try #require(board.sources[.audio])
        audio.loaded(SourceReport(device: "mic"))
        ticks(2, watch)
        let since = clock.stamp()
        clock.advance(by: .seconds(45))
        audio.failed(Failure("no heartbeat for 45 s"))
        watch.isAway(.audio, since: since.boot)
        watch.check()
        #expect(events.value.map(\.kind) == [.sourceLost])
        #expect(events.value.first?.detail.first?.value == .seen(since.wall))
    }

    @Test func sourceThatStartsForEver_standsInTheErrors() {
        let watch = watch()
        board.sources[.audio]?.loading()
        ticks(2, watch)
        #expect(events.value.map(\.kind) == [.sourceLost])
        #expect(
            board.errors.entries.reversed().map(\.failure.message) == [
                "audio: did not start and gave no reason"
            ]
        )
    }

    @Test func sourceThatIsNotToRun_isNeverLost() {
        let watch = watch()
        ticks(3, watch)
        #expect(events.value.isEmpty)
        board.sources[.beacons]?.failed(Failure("gone"))
        board.resting.update { $0[.beacons] = "disabled in the configuration" }
        ticks(3, watch)
        #expect(events.value.isEmpty)
        // Enabled again: a start like any other.
        board.resting.update { $0 = [:] }
        board.sources[.beacons]?.loading()
        clock.advance(by: .seconds(10))
        board.sources[.beacons]?.loaded(SourceReport(device: "hci0"))
        ticks(3, watch)
        #expect(events.value.isEmpty)
    }

    /// A source reported as lost must be reported as back.
    @Test func sourceLostThenDisabled_isBack_onceItWorksAgain() throws {
        let watch = watch()
        let audio = try #require(board.sources[.audio])
        audio.failed(Failure("unplugged"))
        ticks(2, watch)
        #expect(events.value.map(\.kind) == [.sourceLost])
        board.resting.update { $0[.audio] = "disabled in the configuration" }
        ticks(3, watch)
        #expect(events.value.count == 1)
        board.resting.update { $0 = [:] }
        audio.loading()
        audio.loaded(SourceReport(device: "mic"))
        ticks(2, watch)
        #expect(events.value.map(\.kind) == [.sourceLost, .sourceRecovered])
        #expect(events.value.last?.detail.first?.value == .number(150))
    }

    /// A board without an RTC: the source is lost before the time is known.
    @Test func absence_isDatedByTheClockAsItIsAtItsEnd() throws {
        let watch = watch()
        let location = try #require(board.sources[.location])
        location.failed(Failure("no receiver"))
        ticks(2, watch)
        clock.stepWall(to: WallTime(milliseconds: 1_900_000_000_000))
        location.loaded(SourceReport(device: "gpsd"))
        ticks(2, watch)
        let detail = try #require(events.value.last).detail
        let times = detail.filter { $0.key == "since" || $0.key == "until" }.map(\.value)
        #expect(
            times == [
                .seen(WallTime(milliseconds: 1_899_999_940_000)),
                .seen(WallTime(milliseconds: 1_900_000_000_000)),
            ]
        )
    }

    @Test func sources_areIndependent() {
        let watch = watch()
        for name in SourceName.allCases {
            board.sources[name]?.loaded(SourceReport(device: "d"))
        }
        board.sources[.audio]?.failed(Failure("unplugged"))
        ticks(2, watch)
        #expect(events.value.map(\.source) == ["audio"])
    }
}
