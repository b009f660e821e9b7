// The decisions of a rollout; the clock is a number.
import Host
import Testing

@testable import ServerArchive

private let minute: Int64 = 60_000
private let day: Int64 = 86_400_000

/// A fleet with an interval of ten minutes, all of it online, and a rollout to it.
private struct Fleet {
    var now: Int64 = 1_800_000_000_000
    var seen = Rollout.Observation()
    var rollout: Rollout

    init(_ count: Int, _ stages: String) throws {
        let ids = (0..<count).map { "d\($0 / 10)\($0 % 10)" }
        let counts = try Rollout.stages(stages, of: count)
        rollout = Rollout("forest", ids, counts, newest: [:], at: now)
        for id in ids {
            seen.contacts[id] = RolloutDevice.Contact(lastSeen: now)
            seen.contacts[id]?.interval = 600
        }
    }

    /// Takes a step, and applies its actions to the devices' settings.
    @discardableResult
    mutating func step() -> [Rollout.Action] {
        let actions = rollout.step(seen, at: now)
        for case .give(let id, let version) in actions {
            seen.answers[id] = .init(version: version, state: .waiting, at: now)
        }
        return actions
    }

    /// Lets time pass in which devices are in contact, all but `absent`.
    mutating func pass(_ milliseconds: Int64, without absent: Set<String> = []) {
        now += milliseconds
        for id in Array(seen.contacts.keys) {
            if absent.contains(id) {
                seen.contacts[id]?.silence += milliseconds
            } else {
                seen.contacts[id]?.lastSeen = now
                seen.contacts[id]?.silence = 0
            }
        }
    }

    mutating func answer(_ id: String, _ state: DeviceSettings.State, _ message: String = "") {
        seen.answers[id]?.state = state
        seen.answers[id]?.message = message
        seen.answers[id]?.at = now
    }

    /// Has the devices that were given the version keep it for two intervals.
    mutating func keep(_ actions: [Rollout.Action], without absent: Set<String> = []) {
        for case .give(let id, _) in actions where !absent.contains(id) { answer(id, .kept) }
        pass(20 * minute, without: absent)
    }

    func states(_ state: RolloutDevice.State) -> [String] {
        rollout.devices.filter { $0.state == state }.map(\.deviceId)
    }
}

@Suite struct RolloutTests {
    private func given(_ actions: [Rollout.Action]) -> [String] {
        actions.compactMap { action -> String? in
            guard case .give(let device, _) = action else { return nil }
            return device
        }
    }

    @Test func stages_areCountsAndShares() throws {
        #expect(try Rollout.stages("1,10%,100%", of: 115) == [1, 12, 115])
        #expect(try Rollout.stages("1,10%,100%", of: 3) == [1, 1, 3])
        #expect(try Rollout.stages("100%", of: 1) == [1])
        #expect(try Rollout.stages("9999999999,100%", of: 7) == [7, 7])
        for text in ["", "1,,100%", "0,100%", "-1,100%", "101%,100%", "x,100%", "1%%", "%"] {
            #expect(throws: Failure.self) { try Rollout.stages(text, of: 9) }
        }
        #expect(throws: Failure("the last stage has to be 100%")) {
            try Rollout.stages("1,50%", of: 9)
        }
        #expect(throws: Failure("stages have to rise; of 9 devices these are 5, 1, 9")) {
            try Rollout.stages("5,10%,100%", of: 9)
        }
    }

    @Test func nextStage_beginsAfterTwoIntervals() throws {
        var fleet = try Fleet(30, "1,10%,100%")
        #expect(fleet.step() == [.give(device: "d00", version: 1)])
        #expect(fleet.step().isEmpty)
        fleet.pass(10 * minute)
        fleet.answer("d00", .trial)
        fleet.pass(day)
        #expect(fleet.step().isEmpty)
        fleet.answer("d00", .kept)
        fleet.pass(20 * minute - 1)
        #expect(fleet.step().isEmpty)
        fleet.pass(1)
        let second = fleet.step()
        #expect(given(second) == ["d01", "d02"])
        fleet.keep(second, without: ["d02"])
        #expect(fleet.step().isEmpty && fleet.states(.given) == ["d02"])
        fleet.keep(second)
        let third = fleet.step()
        #expect(given(third).count == 27)
        fleet.keep(third)
        #expect(fleet.step().isEmpty && fleet.rollout.status == .done)
        #expect(!fleet.rollout.isOpen)
    }

    @Test func keptVersion_countsOnlyWithContact() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.step()
        fleet.pass(minute)
        fleet.answer("d00", .kept)
        fleet.pass(25 * minute, without: ["d00"])
        #expect(fleet.step().isEmpty)
        fleet.pass(minute)
        #expect(given(fleet.step()) == ["d01", "d02"])
    }

    @Test func unknownInterval_isHalfAnHour() throws {
        var fleet = try Fleet(2, "1,100%")
        fleet.seen.contacts["d00"]?.interval = nil
        fleet.keep(fleet.step())
        #expect(fleet.step().isEmpty)
        fleet.pass(40 * minute)
        #expect(given(fleet.step()) == ["d01"])
    }

    @Test(arguments: [
        (DeviceSettings.State.rolledBack, "rolled back: no upload"),
        (.refused, "refused: no upload"), (.failed, "failed: no upload"),
        (.expired, "expired"),
    ])
    func answerThatIsBad_haltsAndWithdraws(_ state: DeviceSettings.State, _ reason: String) throws {
        var fleet = try Fleet(10, "1,50%,100%")
        fleet.keep(fleet.step())
        fleet.step()
        fleet.pass(minute)
        fleet.answer("d01", .trial)
        fleet.answer("d02", state, "no upload")
        let withdrawn = ["d03", "d04"].map { Rollout.Action.withdraw(device: $0, version: 1) }
        #expect(fleet.step() == withdrawn)
        #expect(fleet.rollout.status == .halted && fleet.rollout.isOpen)
        #expect(fleet.rollout.culprit == "d02" && fleet.rollout.reason == reason)
        fleet.pass(day)
        #expect(fleet.step().isEmpty && fleet.states(.pending).count == 7)
    }

    @Test func badVersion_touchesOnePercent() throws {
        var fleet = try Fleet(100, "1,10%,100%")
        var touched = Set<String>()
        for _ in 0..<50 {
            touched.formUnion(given(fleet.step()))
            fleet.pass(10 * minute)
            for id in touched { fleet.answer(id, .rolledBack) }
        }
        #expect(touched == ["d00"] && fleet.rollout.status == .halted)
    }

    @Test func silentDevice_halts() throws {
        var fleet = try Fleet(4, "2,100%")
        fleet.step()
        fleet.pass(minute)
        // Late for the interval that it had before: the version may have changed that.
        fleet.pass(40 * minute, without: ["d00"])
        fleet.seen.contacts["d00"]?.isLate = true
        #expect(fleet.step().isEmpty && fleet.rollout.status == .running)
        fleet.pass(day, without: ["d00"])
        #expect(fleet.step() == [.withdraw(device: "d01", version: 1)])
        #expect(fleet.rollout.reason == "silent since it was given the version")
    }

    @Test func deviceOfAnEarlierStage_haltsToo() throws {
        var fleet = try Fleet(4, "1,100%")
        fleet.keep(fleet.step())
        fleet.step()
        fleet.pass(day, without: ["d00"])
        fleet.step()
        #expect(fleet.rollout.status == .halted && fleet.rollout.culprit == "d00")
    }

    @Test func moreLossThanBefore_halts() throws {
        var fleet = try Fleet(4, "2,100%")
        fleet.step()
        fleet.pass(minute)
        // A loss before it had the version, reported now, is not its fault.
        fleet.seen.contacts["d00"]?.lost = 7
        fleet.step()
        for id in ["d00", "d01"] { fleet.answer(id, .trial) }
        // Of d01 no figure was known.
        fleet.seen.contacts["d01"]?.lost = 3
        #expect(fleet.step().isEmpty)
        fleet.seen.contacts["d00"]?.lost = nil
        #expect(fleet.step().isEmpty && fleet.rollout.status == .running)
        fleet.seen.contacts["d00"]?.lost = 8
        fleet.seen.contacts["d01"]?.lost = 4
        fleet.step()
        let reason = "lost 8 records in a day, before the version 7; 1 more failed"
        #expect(fleet.rollout.reason == reason && fleet.states(.failed) == ["d00", "d01"])
    }

    @Test func offlineDevices_comeByThemselvesAtLast() throws {
        var fleet = try Fleet(5, "1,100%")
        let absent: Set<String> = ["d00", "d03"]
        fleet.pass(day, without: absent)
        #expect(fleet.step() == [.give(device: "d01", version: 1)])
        fleet.pass(20 * minute, without: absent)
        fleet.keep([.give(device: "d01", version: 1)], without: absent)
        let second = fleet.step()
        #expect(given(second) == ["d02", "d04"])
        // One is back only when its stage has begun.
        fleet.keep(second, without: absent)
        #expect(fleet.step().isEmpty && fleet.states(.apart) == ["d00", "d03"])
        fleet.pass(minute, without: ["d00"])
        #expect(fleet.step() == [.give(device: "d03", version: 1)])
        fleet.answer("d03", .rolledBack)
        fleet.step()
        #expect(fleet.rollout.status == .halted)
        fleet.pass(minute)
        #expect(fleet.step().isEmpty)
    }

    /// The power of a site comes back: they are not given a version at once that one device kept.
    @Test func offlineDevices_comeOneAfterTheOther() throws {
        var fleet = try Fleet(5, "1,100%")
        let absent: Set<String> = ["d01", "d02", "d03", "d04"]
        fleet.pass(day, without: absent)
        fleet.keep(fleet.step(), without: absent)
        #expect(fleet.step().isEmpty && fleet.states(.apart).count == 4)
        fleet.pass(minute)
        #expect(fleet.step() == [.give(device: "d01", version: 1)])
        fleet.answer("d01", .rolledBack)
        #expect(fleet.step().isEmpty && fleet.rollout.status == .halted)
    }

    @Test func trialWithoutAnEnd_halts() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.step()
        fleet.pass(minute)
        fleet.answer("d00", .trial)
        fleet.step()
        for _ in 0..<3 { fleet.pass(day) }
        #expect(fleet.step().isEmpty && fleet.rollout.culprit == "d00")
        #expect(fleet.rollout.reason == "uploads, but does not say what became of the version")
    }

    @Test func keptVersion_isWatchedInTheStagesOnly() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.pass(day, without: ["d02"])
        fleet.keep(fleet.step(), without: ["d02"])
        fleet.keep(fleet.step(), without: ["d02"])
        #expect(fleet.step().isEmpty && fleet.states(.held) == ["d00", "d01"])
        fleet.pass(day, without: ["d00", "d02"])
        #expect(fleet.step().isEmpty && fleet.rollout.status == .running)
    }

    @Test func stageWithoutContact_isCountedWithoutItAfterADay() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.step()
        fleet.pass(day - 1, without: ["d00"])
        fleet.seen.contacts["d00"]?.isLate = true
        #expect(fleet.step().isEmpty)
        fleet.pass(1, without: ["d00"])
        // Nobody has kept the version yet, so the first stage takes another device.
        let actions = fleet.step()
        #expect(
            actions == [.withdraw(device: "d00", version: 1), .give(device: "d01", version: 1)]
        )
        fleet.keep(actions, without: ["d00"])
        let second = fleet.step()
        #expect(given(second) == ["d02"])
        fleet.pass(minute)
        fleet.seen.contacts["d00"]?.isLate = false
        fleet.keep(second)
        #expect(fleet.step() == [.give(device: "d00", version: 2)])
        fleet.keep([.give(device: "d00", version: 2)])
        fleet.step()
        #expect(fleet.rollout.status == .done)
    }

    @Test func withdrawnVersion_thatWasFetched_counts() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.step()
        fleet.pass(day, without: ["d00"])
        fleet.step()
        #expect(fleet.states(.apart) == ["d00"])
        fleet.pass(minute)
        fleet.answer("d00", .trial)
        fleet.step()
        #expect(fleet.states(.given) == ["d00", "d01"])
        fleet.answer("d00", .rolledBack, "x")
        fleet.step()
        #expect(fleet.rollout.culprit == "d00")
    }

    @Test func everybodyOffline_waits() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.pass(day, without: ["d00", "d01", "d02"])
        fleet.seen.contacts["d02"] = nil
        for _ in 0..<3 { #expect(fleet.step().isEmpty) }
        #expect(fleet.states(.pending).count == 3)
        fleet.pass(minute)
        #expect(given(fleet.step()) == ["d00"])
    }

    @Test func lateDevices_areNotTheFirst() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.seen.contacts["d00"]?.isLate = true
        #expect(given(fleet.step()) == ["d01"])
    }

    @Test func weeklyUploads_areNotOffline() throws {
        var fleet = try Fleet(1, "100%")
        fleet.seen.contacts["d00"]?.interval = 7 * 86_400
        fleet.pass(6 * day, without: ["d00"])
        #expect(given(fleet.step()) == ["d00"])
        fleet.pass(7 * day, without: ["d00"])
        fleet.step()
        #expect(fleet.states(.given) == ["d00"])
    }

    @Test func deviceThatDoesNotAnswer_halts() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.step()
        fleet.pass(2 * day - 1)
        #expect(fleet.step().isEmpty && fleet.rollout.status == .running)
        fleet.pass(1)
        fleet.step()
        let reason = "uploads, but does not say what became of the version"
        #expect(fleet.rollout.reason == reason)
    }

    @Test func laterVersionOfAPerson_takesADeviceOut() throws {
        var fleet = try Fleet(3, "1,100%")
        fleet.step()
        fleet.seen.answers["d00"] = .init(version: 2, state: .refused, at: fleet.now)
        fleet.seen.answers["d01"] = .init(version: 1, state: .waiting, at: fleet.now)
        #expect(fleet.step() == [.give(device: "d02", version: 1)])
        #expect(fleet.states(.left) == ["d00", "d01"])
        #expect(fleet.rollout.devices[0].reason == "it has version 2 of somebody else")
        fleet.seen.contacts["d02"]?.isRevoked = true
        #expect(fleet.step().isEmpty && fleet.rollout.status == .done)
    }

    @Test func stop_andResume() throws {
        var fleet = try Fleet(4, "1,50%,100%")
        fleet.keep(fleet.step())
        fleet.step()
        fleet.pass(minute)
        #expect(fleet.rollout.stop(at: fleet.now) == [.withdraw(device: "d01", version: 1)])
        #expect(!fleet.rollout.isOpen && fleet.step().isEmpty)
        #expect(fleet.rollout.stop(at: fleet.now).isEmpty)
        fleet.rollout.resume(at: fleet.now)
        #expect(fleet.step() == [.give(device: "d01", version: 2)])
        fleet.answer("d01", .refused)
        fleet.step()
        #expect(fleet.rollout.status == .halted)
        fleet.rollout.resume(at: fleet.now)
        #expect(fleet.rollout.culprit.isEmpty)
        #expect(fleet.step() == [.give(device: "d02", version: 1)])
        fleet.keep([.give(device: "d02", version: 1)])
        let last = fleet.step()
        #expect(given(last) == ["d03"])
        fleet.keep(last)
        fleet.step()
        fleet.rollout.resume(at: fleet.now)
        #expect(fleet.rollout.status == .done && fleet.states(.failed) == ["d01"])
    }
}
