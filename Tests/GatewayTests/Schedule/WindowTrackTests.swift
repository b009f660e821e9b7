// One source's schedule through time: exact changes, clock steps, suspends, doubts.
import Configuration
import Host
import Schedule
import Status
import Testing

@testable import Daemon

@Suite struct WindowTrackTests {
    /// 2027-01-01 05:00 UTC, an hour after boot.
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 3_600_000_000_000),
        wall: WallTime(rfc3339: "2027-01-01T05:00:00Z") ?? WallTime(milliseconds: 0)
    )

    private func at(_ seconds: Double, step: Double = 0) -> Stamp {
        var stamp = Self.start.advanced(by: .seconds(seconds))
        stamp.wall = stamp.wall + .seconds(step)
        return stamp
    }

    private func track(_ windows: String..., duty: String? = nil) throws -> WindowTrack {
        let windows = try windows.map { try ScheduleWindow.parse($0).get() }
        let duty = try duty.map { try DutyCycle.parse($0).get() }
        return WindowTrack(.audio, Schedule(windows: windows, duty: duty))
    }

    /// Describes changes: seconds since the start, and the cause.
    private func reported(_ changes: [WindowChange]) -> [String] {
        changes.map { change in
            let seconds = (change.at.boot - Self.start.boot).milliseconds
            #expect(change.at.wall.milliseconds % 1000 == 0 || change.cause.isEmpty)
            return "\(change.isOpen ? "open" : "closed") \(Double(seconds) / 1000) \(change.cause)"
        }
    }

    private func advance(_ track: inout WindowTrack, _ now: Stamp, isRight: Bool = true) -> [String]
    {
        reported(track.advance(to: now, isRight: isRight, position: nil))
    }

    @Test func plannedChanges_haveTheirPlannedTime() throws {
        var track = try track("06:00..06:01")
        #expect(advance(&track, at(0)) == ["closed 0.0 "])
        #expect(advance(&track, at(3598)) == [])
        #expect(advance(&track, at(3600.02)) == ["open 3600.0 06:00"])
        #expect(track.isOpen)
        #expect(advance(&track, at(3659.99)) == [])
        #expect(advance(&track, at(3661)) == ["closed 3660.0 06:01"])
    }

    /// Opened 2 s before the window, closed 1 s after it; less where the pause is shorter.
    @Test func device_isOpenAroundTheWindow() throws {
        var track = try track(duty: "10s/1m")
        _ = advance(&track, at(15))
        #expect(track.window(at: at(57.9).boot, isPrompt: false) == nil)
        let early = try #require(track.window(at: at(58).boot, isPrompt: false))
        #expect(early.opens == at(60))
        #expect(early.wasPlanned)
        #expect(track.window(at: at(59).boot, isPrompt: true) == nil)
        #expect(track.wake(after: at(15).boot, isPrompt: false) == at(58).boot)
        #expect(track.wake(after: at(58).boot, isPrompt: false) == at(60).boot)
        #expect(track.wake(after: at(15).boot, isPrompt: true) == at(60).boot)
        _ = advance(&track, at(60))
        let open = try #require(track.window(at: at(60).boot, isPrompt: false))
        // The same window: its device is not opened again.
        #expect(open.opens == early.opens)
        #expect(open.closes == at(70).boot)
        _ = advance(&track, at(70))
        #expect(track.isClosing(at: at(70.9).boot, isPrompt: false))
        #expect(!track.isClosing(at: at(70.9).boot, isPrompt: true))
        #expect(track.wake(after: at(70).boot, isPrompt: false) == at(71).boot)
        #expect(!track.isClosing(at: at(71).boot, isPrompt: false))
        var brief = try self.track(duty: "2s/4s")
        _ = advance(&brief, at(2.5))
        _ = advance(&brief, at(4))
        _ = advance(&brief, at(6))
        #expect(brief.isClosing(at: at(6.9).boot, isPrompt: false))
        #expect(brief.window(at: at(6.9).boot, isPrompt: false) == nil)
        #expect(brief.window(at: at(7).boot, isPrompt: false)?.opens == at(8))
    }

    /// The clock steps while it records: the change is when it is noticed, not at a time that is past.
    @Test func clockStep_changesAtOnce() throws {
        var track = try track("06:00..07:00")
        _ = advance(&track, at(0))
        #expect(advance(&track, at(10, step: 3600)) == ["open 10.0 "])
        #expect(track.next?.at.boot == at(10 + 3590).boot)
        #expect(advance(&track, at(20, step: -3600)) == ["closed 20.0 "])
        #expect(track.window(at: at(21).boot, isPrompt: false) == nil)
        #expect(!track.isClosing(at: at(20.5).boot, isPrompt: false))
    }

    /// A clock that is slewed back a little does not close the window that it has just opened.
    @Test func smallStepBack_afterAnEdge_changesNothing() throws {
        var track = try track("06:00..07:00")
        _ = advance(&track, at(0))
        #expect(advance(&track, at(3600)) == ["open 3600.0 06:00"])
        #expect(advance(&track, at(3600.1, step: -0.5)) == [])
        #expect(advance(&track, at(3601, step: -30)) == ["closed 3601.0 "])
    }

    /// A plan is kept while the clock is slewed, so that a device that is already open stays so.
    @Test func slewedClock_movesAPlanOnlyByMuch() throws {
        var track = try track("06:00..07:00")
        _ = advance(&track, at(0))
        let plan = track.next
        _ = advance(&track, at(3598, step: 0.04))
        #expect(track.next == plan)
        _ = advance(&track, at(3598.5, step: 0.06))
        #expect(track.next?.at.boot == at(3599.94).boot)
    }

    @Test func suspend_makesUpForEachChange() throws {
        var track = try track(duty: "1m/10m")
        _ = advance(&track, at(0))
        #expect(
            advance(&track, at(1215)) == [
                "closed 60.0 1m/10m", "open 600.0 1m/10m", "closed 660.0 1m/10m",
                "open 1200.0 1m/10m",
            ]
        )
        #expect(track.next?.at == at(1260))
        // Years: bounded, and right at the end.
        #expect(advance(&track, at(86_400 * 365 + 90)).count <= 1001)
        #expect(!track.isOpen)
    }

    @Test func unknownTimeOrPosition_isOpen_andSaysWhy() throws {
        var track = try track("06:00..07:00")
        #expect(advance(&track, at(0), isRight: false) == ["open 0.0 "])
        #expect(track.doubt == .time)
        #expect(track.next == nil)
        #expect(advance(&track, at(5)) == ["closed 5.0 "])
        #expect(track.doubt == nil)
        var sun = try self.track("sunrise..sunset")
        #expect(advance(&sun, at(0)) == ["open 0.0 "])
        #expect(sun.doubt == .position)
        #expect(
            reported(sun.advance(to: at(1), isRight: true, position: SitePosition("46,6"))) == [
                "closed 1.0 "
            ]
        )
    }

    @Test func noSchedule_isAlwaysOpen_whateverIsKnown() throws {
        var track = try track()
        #expect(advance(&track, at(0), isRight: false) == ["open 0.0 "])
        #expect(track.doubt == nil)
        #expect(track.wake(after: at(0).boot, isPrompt: false) == nil)
        // A reload that sets a schedule which is open restarts nothing.
        track.schedule = try self.track("04:00..06:00").schedule
        #expect(advance(&track, at(10)) == [])
        #expect(track.window(at: at(10).boot, isPrompt: false)?.opens == at(0))
    }
}
