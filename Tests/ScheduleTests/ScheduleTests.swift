// Open or closed, and the next change: each rule alone, and all against a slow second opinion.
import Configuration
import Host
import Support
import Testing

@testable import Schedule

private let alps = SitePosition("46.46,6.84")
private let north = SitePosition("78.2,15.6")

/// A time on 2027-01-01 plus `days`.
private func time(_ text: String, _ days: Int = 0) -> WallTime {
    WallTime(milliseconds: newYear * 86_400_000) + .days(days)
        + .seconds((minutes(ofTime: text) ?? 0) * 60)
}

@Suite struct ScheduleTests {
    private func state(
        _ schedule: Schedule,
        _ text: String,
        _ days: Int = 0,
        _ place: SitePosition? = alps
    )
        -> String
    {
        let state = schedule.state(at: time(text, days), position: place)
        let next = state.next.map { "\($0.at.rfc3339.dropFirst(5).prefix(14)) \($0.cause)" } ?? "-"
        return "\(state.isOpen ? "open" : "closed") \(next)"
    }

    @Test func noWindow_isAlwaysOpen() {
        #expect(Schedule().isAlways)
        #expect(state(Schedule(), "12:00") == "open -")
    }

    @Test func window_opensAtItsStart_andIsClosedAtItsEnd() {
        let schedule = Schedule(windows: windows("06:00..08:00"))
        #expect(state(schedule, "05:59") == "closed 01-01T06:00:00 06:00")
        #expect(state(schedule, "06:00") == "open 01-01T08:00:00 08:00")
        #expect(state(schedule, "08:00") == "closed 01-02T06:00:00 06:00")
    }

    @Test func window_crossesMidnight() {
        let schedule = Schedule(windows: windows("22:00..04:00"))
        #expect(state(schedule, "23:00") == "open 01-02T04:00:00 04:00")
        #expect(state(schedule, "00:00") == "open 01-01T04:00:00 04:00")
        #expect(state(schedule, "12:00") == "closed 01-01T22:00:00 22:00")
        #expect(
            state(Schedule(windows: windows("12:00..24:00")), "23:59")
                == "open 01-02T00:00:00 24:00"
        )
    }

    @Test func wholeDays_neverClose() {
        for whole in [windows("00:00..24:00"), windows("00:00..12:00", "12:00..24:00")] {
            #expect(state(Schedule(windows: whole), "11:59") == "open -")
        }
    }

    @Test func overlappingWindows_areOne() {
        let schedule = Schedule(
            windows: windows("06:00..08:00", "07:00..09:00", "09:00..10:00", "06:30..07:30")
        )
        #expect(state(schedule, "06:00") == "open 01-01T10:00:00 10:00")
    }

    @Test func offset_movesTimesOfDay_andNotTheSun() {
        let east = Schedule(windows: windows("06:00..08:00"), offset: 120)
        #expect(state(east, "03:59") == "closed 01-01T04:00:00 06:00")
        let west = Schedule(windows: windows("20:00..22:00"), offset: -300)
        #expect(state(west, "02:00") == "open 01-01T03:00:00 22:00")
        let sun = Schedule(windows: windows("sunrise..noon"), offset: 720)
        #expect(state(sun, "00:00") == state(Schedule(windows: windows("sunrise..noon")), "00:00"))
    }

    @Test func sunWindow_followsTheDay() {
        let schedule = Schedule(windows: windows("sunrise-1h..sunrise+3h"))
        #expect(state(schedule, "00:00") == "closed 01-01T06:16:21 sunrise-1h")
        #expect(state(schedule, "00:00", 181) == "closed 07-01T02:43:42 sunrise-1h")
        #expect(state(schedule, "00:00", 0, nil) == "closed -")
    }

    @Test func night_isFromOneDayToTheNext() {
        let schedule = Schedule(windows: windows("sunset..sunrise"))
        #expect(state(schedule, "12:00") == "closed 01-01T15:55:59 sunset")
        #expect(state(schedule, "23:00") == "open 01-02T07:16:21 sunrise")
    }

    /// The sun of Svalbard neither rises in January nor sets in June.
    @Test func polarNightAndDay() {
        let day = Schedule(windows: windows("sunrise..sunset"))
        let night = Schedule(windows: windows("sunset..sunrise"))
        #expect(state(day, "12:00", 0, north).hasPrefix("closed 02-1"))
        #expect(state(night, "12:00", 0, north) == "open -")
        #expect(state(day, "12:00", 170, north) == "open -")
        #expect(state(night, "12:00", 170, north).hasPrefix("closed 08-2"))
        // Around noon, and around midnight.
        let dawn = Schedule(windows: windows("sunrise-1h..sunrise+1h"))
        #expect(state(dawn, "11:30", 0, north).hasPrefix("open 01-01T12:0"))
        #expect(
            state(dawn, "23:30", 170, north).hasPrefix("open 06-20T23:5")
                || state(dawn, "23:30", 170, north).hasPrefix("open 06-21T00:0")
        )
    }

    /// In December the sun has set before 16:30; in June it sets after 20:00.
    @Test func timeAndSun_thatHavePassedEachOther_doNotOpen() {
        let evening = Schedule(windows: windows("16:30..sunset"))
        #expect(state(evening, "17:00").hasPrefix("closed 01-28T16:30:00 16:30"))
        #expect(state(evening, "17:00", 170).hasPrefix("open 06-20T19:"))
        let late = Schedule(windows: windows("sunset..19:00"))
        #expect(state(late, "18:00").hasPrefix("open 01-01T19:00:00 19:00"))
        #expect(state(late, "20:00", 170).hasPrefix("closed 08-"))
        let night = Schedule(windows: windows("22:00..sunrise"))
        #expect(state(night, "23:00") == "open 01-02T07:16:21 sunrise")
    }

    @Test func duty_isOnAGridOfUTC_insideTheWindows() {
        let schedule = Schedule(
            windows: windows("06:05..06:31"),
            duty: try? DutyCycle.parse("2m/10m").get(),
            offset: 0
        )
        #expect(state(schedule, "06:00") == "closed 01-01T06:10:00 2m/10m")
        #expect(state(schedule, "06:05") == "closed 01-01T06:10:00 2m/10m")
        #expect(state(schedule, "06:11") == "open 01-01T06:12:00 2m/10m")
        // The window ends first.
        #expect(state(schedule, "06:30") == "open 01-01T06:31:00 06:31")
        #expect(state(schedule, "06:22") == "closed 01-01T06:30:00 2m/10m")
        #expect(state(schedule, "06:31") == "closed 01-02T06:10:00 2m/10m")
        let inside = Schedule(windows: windows("06:01..06:09"), duty: schedule.duty)
        #expect(state(inside, "00:00") == "closed 01-01T06:01:00 06:01")
    }

    @Test func dutyAlone_andAWindowItMisses() {
        let duty = try? DutyCycle.parse("1m/10m").get()
        #expect(state(Schedule(duty: duty), "12:00") == "open 01-01T12:01:00 1m/10m")
        #expect(state(Schedule(duty: duty), "12:01") == "closed 01-01T12:10:00 1m/10m")
        #expect(
            state(Schedule(windows: windows("06:02..06:09"), duty: duty), "12:00") == "closed -"
        )
    }

    @Test func times_beforeTheEpoch_doNotCrash() {
        let schedule = Schedule(windows: windows("sunset..sunrise"), duty: .example)
        for year in [-200_000, -20_000, 0, 200_000] {
            _ = schedule.state(at: WallTime(milliseconds: 0) + .days(year), position: alps)
        }
    }

    /// Walks each schedule from change to change, and compares with the membership of single times.
    @Test(arguments: 0..<60)
    func nextChange_isTheFirstChange(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        let schedule = try randomSchedule(&random)
        let place = SitePosition(
            latitude: Double.random(in: -80...80, using: &random),
            longitude: Double.random(in: -180...180, using: &random)
        )
        let start = time("00:00", Int.random(in: 0..<365, using: &random))
        var (now, open) = (start, Int64(0))
        while now < start + .days(5) {
            let state = schedule.state(at: now, position: place)
            #expect(state.isOpen == isOpen(schedule, now, place))
            let next = min(state.next?.at ?? start + .days(5), start + .days(5))
            if let change = state.next {
                #expect(change.at > now)
                #expect(schedule.state(at: change.at, position: place).isOpen != state.isOpen)
            }
            for _ in 0..<20 where next > now + .milliseconds(1) {
                let between = WallTime(
                    milliseconds: .random(in: now.milliseconds..<next.milliseconds, using: &random)
                )
                #expect(isOpen(schedule, between, place) == state.isOpen)
            }
            if state.isOpen { open += next.milliseconds - now.milliseconds }
            now = next
        }
        #expect(schedule.openLength(from: start, to: start + .days(5), place) == open)
        let times = schedule.openTimes(from: start, to: start + .days(5), place)
        #expect(times.reduce(0) { $0 + $1.to.milliseconds - $1.from.milliseconds } == open)
    }

    private func randomSchedule(_ random: inout SeededRandom) throws -> Schedule {
        func edge() -> String {
            if Bool.random(using: &random) {
                return timeText(Int.random(in: 0..<1440, using: &random))
            }
            let offset = Int.random(in: -180...180, using: &random)
            let event = SunEvent.allCases[Int.random(in: 0..<5, using: &random)]
            return event.rawValue + (offset < 0 ? "\(offset)m" : "+\(offset)m")
        }
        var schedule = Schedule(offset: Int.random(in: -840...840, using: &random))
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            if case .success(let window) = ScheduleWindow.parse("\(edge())..\(edge())") {
                schedule.windows.append(window)
            }
        }
        if Bool.random(using: &random) {
            let on = Int.random(in: 1...40, using: &random)
            schedule.duty = try DutyCycle.parse(
                "\(on)m/\(on + Int.random(in: 1...90, using: &random))m"
            ).get()
        }
        return schedule
    }

    /// Whether one time is in any window, by each window's own edges.
    private func isOpen(_ schedule: Schedule, _ now: WallTime, _ place: SitePosition?) -> Bool {
        let isInWindow =
            schedule.windows.isEmpty
            || schedule.windows.contains { window in
                let alone = Schedule(windows: [window], offset: schedule.offset)
                return alone.spans(from: now, to: now + .milliseconds(1), place)
                    .contains { $0.from <= now && now < $0.to }
            }
        guard isInWindow, let duty = schedule.duty else { return isInWindow }
        let rest = now.milliseconds % duty.period
        return (rest + duty.period) % duty.period < duty.on
    }
}
