// Time and position of the schedules: which clock is followed, what is stored, what status says.
import Configuration
import Host
import Queue
import QueueSupport
import Records
import Schedule
import Setup
import StatusBoard
import Support
import Testing

@testable import Daemon
@testable import Status

@Suite struct SourceScheduleTests {
    private let folder = TemporaryFolder()
    private let board = GatewayBoard()
    private let queue: Queue
    private let clock = ManualClock(Self.stamp("1970-01-01T00:00:00Z"))

    init() throws {
        queue = try folder.queue(clock: clock)
    }

    /// An hour after boot.
    private static func stamp(_ text: String) -> Stamp {
        Stamp(
            boot: BootInstant(nanoseconds: 3_600_000_000_000),
            wall: WallTime(rfc3339: text) ?? WallTime(milliseconds: -1)
        )
    }

    private func wall(_ text: String) -> WallTime { Self.stamp(text).wall }

    private func schedule() throws -> SourceSchedule {
        try SourceSchedule(queue, board, clock: clock, log: Log(level: .error))
    }

    private func configuration(_ window: String, fixed: String? = nil) throws -> Configuration {
        var configuration = Configuration()
        configuration.schedules.audioWindows = [try ScheduleWindow.parse(window).get()]
        configuration.schedules.fixed = fixed.flatMap { SitePosition($0) }
        return configuration
    }

    /// The clock is right from now on.
    private func sync() throws {
        let now = clock.stamp()
        try queue.perform { try $0.recordClock(now, synced: true) }
    }

    private func runs(_ schedule: SourceSchedule, _ configuration: Configuration) -> Bool {
        if case .run = schedule.look(configuration).orders[.audio] { true } else { false }
    }

    private var off: String? { board.schedule.state.value?.off[.audio] }

    @Test func unknownTime_runs_andIsSaid_untilTheClockIsSynced() throws {
        defer { queue.close() }
        let (schedule, configuration) = (try schedule(), try configuration("06:00..07:00"))
        #expect(runs(schedule, configuration))
        #expect(board.schedule.state.value?.remarks[.audio]?.contains("no time is known") == true)
        clock.stepWall(to: wall("2027-01-01T05:00:00Z"))
        try sync()
        #expect(!runs(schedule, configuration))
        #expect(off == "off until 06:00 UTC (06:00)")
        #expect(board.schedule.state.value?.remarks == [:])
    }

    /// A board with an RTC, without network and GNSS.
    @Test func clockThatNobodyVouchesFor_isFollowed_andThatIsSaid() throws {
        defer { queue.close() }
        clock.stepWall(to: wall("2027-01-01T05:00:00Z"))
        #expect(!runs(try schedule(), try configuration("06:00..07:00")))
        #expect(off == "off until 06:00 UTC (06:00), by a clock that is not synced")
    }

    /// A board without an RTC: an hour of this boot has passed since the last known time.
    @Test func clockBehindTheLastKnownTime_isNotFollowed() throws {
        defer { queue.close() }
        queue.remember("schedule", "\(wall("2027-01-01T05:30:00Z").milliseconds) - -")
        clock.stepWall(to: wall("2026-12-31T23:00:00Z"))
        #expect(runs(try schedule(), try configuration("06:00..07:00")))
        #expect(!runs(try schedule(), try configuration("05:00..06:00")))
    }

    /// In this boot the clock was right, and somebody sets it wrong.
    @Test func wrongStep_isNotFollowed() throws {
        defer { queue.close() }
        clock.stepWall(to: wall("2027-01-01T06:30:00Z"))
        try sync()
        let (schedule, configuration) = (try schedule(), try configuration("06:00..07:00"))
        #expect(runs(schedule, configuration))
        clock.stepWall(to: wall("2027-01-01T16:30:00Z"))
        #expect(runs(schedule, configuration))
        clock.advance(by: .seconds(1801))
        _ = schedule.look(configuration)
        #expect(
            off == "off until 2027-01-02 06:00 UTC (06:00)" || off == "off until 06:00 UTC (06:00)"
        )
    }

    @Test func position_isTheReceivers_elseTheStored_elseTheFixed() throws {
        defer { queue.close() }
        clock.stepWall(to: wall("2027-01-01T12:00:00Z"))
        try sync()
        let sun = try configuration("sunrise..sunset")
        #expect(runs(try schedule(), sun))
        #expect(board.schedule.state.value?.remarks[.audio]?.contains("location.fixed") == true)
        let fixed = try configuration("sunrise..sunset", fixed: "0,180")
        let schedule = try schedule()
        #expect(!runs(schedule, fixed))
        #expect(board.schedule.state.value?.position == SitePosition("0,180"))
        schedule.hasChanged.clear()
        schedule.record(
            place: Fix(
                stamp: clock.stamp(),
                mode: .twoDimensional,
                latitude: 46.46,
                longitude: 6.84
            )
        )
        #expect(runs(schedule, fixed))
        // The position of the site survives a restart, but not a move of the fixed one.
        #expect(runs(try self.schedule(), fixed))
        #expect(board.schedule.state.value?.position == SitePosition("46.46,6.84"))
        #expect(!runs(try self.schedule(), try configuration("sunrise..sunset", fixed: "1,180")))
    }

    @Test func move_wakesTheSchedule_andAWalkDoesNot() throws {
        defer { queue.close() }
        let (schedule, sun) = (try schedule(), try configuration("sunrise..sunset"))
        _ = schedule.look(sun)
        func wakes(_ latitude: Double) -> Bool {
            schedule.record(
                place: Fix(
                    stamp: clock.stamp(),
                    mode: .twoDimensional,
                    latitude: latitude,
                    longitude: 6
                )
            )
            var entries = [PollEntry(schedule.hasChanged.descriptor)]
            _ = wait(for: &entries, timeout: .zero)
            schedule.hasChanged.clear()
            return entries[0].isReady
        }
        #expect(wakes(46))
        #expect(!wakes(46.05))
        #expect(wakes(46.2))
    }

    /// A source took so long to stop that its next window has begun.
    @Test func edgeThatPassesAfterALook_isNotForgotten() throws {
        defer { queue.close() }
        clock.stepWall(to: wall("2027-01-01T05:59:50Z"))
        try sync()
        let (schedule, configuration) = (try schedule(), try configuration("06:00..07:00"))
        #expect(!runs(schedule, configuration))
        clock.advance(by: .seconds(15))
        #expect(try #require(schedule.wake) <= clock.now())
        #expect(runs(schedule, configuration))
        #expect(try #require(schedule.wake) > clock.now())
    }

    @Test func withoutASchedule_nothingWakes() throws {
        defer { queue.close() }
        let schedule = try schedule()
        _ = schedule.look(Configuration())
        #expect(schedule.wake == nil)
        _ = schedule.look(try configuration("06:00..07:00"))
        // No time is known: it looks again in an hour.
        #expect(schedule.wake == clock.now() + .seconds(3600))
    }
}
