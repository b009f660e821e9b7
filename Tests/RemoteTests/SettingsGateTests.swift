// When settings on trial are kept, and when they are rolled back.
import Host
import Testing

@testable import Remote

@Suite struct SettingsGateTests {
    private static let half = Duration.seconds(30)

    private static func gate(
        _ healthy: [String] = ["audio", "beacons"],
        newest: [String: Int64] = [:],
        interval: Duration = .seconds(60),
        to new: Duration = .seconds(60),
        judgesUploads: Bool = true
    ) -> SettingsGate {
        SettingsGate(
            before: .init(
                healthy: healthy,
                newest: newest,
                intervalMs: interval.milliseconds,
                newIntervalMs: new.milliseconds,
                judgesUploads: judgesUploads
            )
        )
    }

    private static func observation(
        accepted: Bool = false,
        excused: Bool = false,
        _ others: [String: SettingsGate.Condition] = [:]
    ) -> SettingsGate.Observation {
        var observation = SettingsGate.Observation(passed: half)
        observation.isAccepted = accepted
        observation.isExcused = excused
        observation.sources = ["audio": .collects, "beacons": .collects]
            .merging(others) { $1 }
        return observation
    }

    /// Returns the minutes until a verdict, and the verdict; nil after `days`.
    private static func verdict(
        _ gate: SettingsGate,
        _ observation: SettingsGate.Observation,
        days: Int = 31
    ) -> (minutes: Int, verdict: SettingsGate.Verdict)? {
        var gate = gate
        for number in 1...(days * 2880) {
            let verdict = gate.observe(observation)
            if verdict != .undecided { return (number / 2, verdict) }
        }
        return nil
    }

    @Test func twoAcceptedUploads_keep() {
        var gate = Self.gate()
        #expect(gate.observe(Self.observation(accepted: true)) == .undecided)
        #expect(gate.observe(Self.observation()) == .undecided)
        #expect(gate.observe(Self.observation(accepted: true)) == .keep)
    }

    @Test func sourceThatWasHealthy_mustBeHealthyAgain() {
        var gate = Self.gate()
        let bad = Self.observation(accepted: true, ["audio": .fails("no device")])
        for _ in 0..<10 { #expect(gate.observe(bad) == .undecided) }
        #expect(gate.observe(Self.observation()) == .keep)
        // One that was not is no reason to wait.
        var other = Self.gate(["beacons"])
        #expect(other.observe(bad) == .undecided)
        #expect(other.observe(bad) == .keep)
    }

    @Test func unhealthySource_rollsBackAfterTenMinutes() {
        let bad = Self.observation(accepted: true, ["audio": .fails("no device")])
        let end = Self.verdict(Self.gate(), bad)
        #expect(end?.minutes == 10)
        #expect(end?.verdict == .rollBack("audio did not collect for 10 minutes: no device"))
        // One that works in between is given the time again.
        var gate = Self.gate(judgesUploads: false)
        for _ in 0..<10 {
            for _ in 0..<19 {
                #expect(gate.observe(Self.observation(["audio": .fails("busy")])) == .undecided)
            }
            #expect(gate.observe(Self.observation()) == .undecided)
        }
    }

    @Test func secondStart_rollsBack() {
        var gate = Self.gate()
        #expect(gate.start() == .undecided)
        #expect(
            gate.start() == .rollBack("the gateway was started 2 times within 10 minutes each")
        )
        // Power cuts of a solar site, or an upgrade, are no reason.
        var other = Self.gate(judgesUploads: false)
        for _ in 0..<5 {
            #expect(other.start() == .undecided)
            for _ in 0..<20 { #expect(other.observe(Self.observation()) == .undecided) }
        }
    }

    @Test(arguments: [(300, 60), (1200, 60), (7200, 360)])
    func nothingAccepted_rollsBackAfterThreeIntervals(
        interval: Int,
        minutes: Int
    ) {
        let gate = Self.gate(interval: .seconds(interval))
        let end = Self.verdict(gate, Self.observation())
        #expect(end?.minutes == minutes)
        #expect(end?.verdict == .rollBack("no upload was accepted for \(minutes) minutes"))
    }

    /// An outage of 30 days, or settings that have nothing to do with uploads.
    @Test func outage_doesNotRollBack() {
        #expect(Self.verdict(Self.gate(), Self.observation(excused: true)) == nil)
        #expect(Self.verdict(Self.gate(judgesUploads: false), Self.observation()) == nil)
    }

    /// An accepted upload starts the time again.
    @Test func timeOfAnOutage_doesNotAddUp() {
        var gate = Self.gate()
        for _ in 0..<119 { #expect(gate.observe(Self.observation()) == .undecided) }
        #expect(gate.observe(Self.observation(accepted: true)) == .undecided)
        for _ in 0..<119 { #expect(gate.observe(Self.observation()) == .undecided) }
    }

    @Test func hostileFigures_doNotTrap() {
        var gate = Self.gate(interval: .milliseconds(Int64.max), judgesUploads: false)
        var observation = Self.observation()
        observation.passed = .seconds(-1000)
        for _ in 0..<3 { #expect(gate.observe(observation) == .undecided) }
    }

    /// Replies, a backlog or a person make uploads that follow each other at once.
    @Test func uploadsThatFollowAtOnce_countAsOne() {
        var gate = Self.gate(interval: .seconds(60), to: .seconds(3600))
        for _ in 0..<60 { #expect(gate.observe(Self.observation(accepted: true)) == .undecided) }
        #expect(gate.observe(Self.observation(accepted: true)) == .keep)
    }

    /// It is off by its schedule or its duty cycle in between.
    @Test func timeThatASourceIsNotDue_isNoEvidence() {
        var gate = Self.gate(["audio"], judgesUploads: false)
        let off = Self.observation(accepted: true, ["audio": .isNotDue])
        for _ in 0..<100 { #expect(gate.observe(off) == .undecided) }
        let bad = Self.observation(accepted: true, ["audio": .fails("busy")])
        for _ in 0..<19 {
            #expect(gate.observe(bad) == .undecided)
            #expect(gate.observe(off) == .undecided)
        }
        #expect(gate.observe(bad) == .rollBack("audio did not collect for 10 minutes: busy"))
        var other = Self.gate(["audio"])
        #expect(other.observe(off) == .undecided)
        #expect(other.observe(off) == .undecided)
        #expect(other.observe(Self.observation()) == .keep)
        // One that the version switches off is not asked for.
        var without = Self.gate(["audio"])
        let none = Self.observation(accepted: true, ["audio": .isOff])
        #expect(without.observe(none) == .undecided)
        #expect(without.observe(none) == .keep)
    }

    /// A filter that lets nothing pass, a level that no sound reaches.
    @Test func sourceWithoutRecords_rollsBackAfterAnHour() {
        let gate = Self.gate(["audio"], newest: ["audio": 7], judgesUploads: false)
        var silent = Self.observation(accepted: true)
        silent.newest = ["audio": 7]
        let end = Self.verdict(gate, silent)
        #expect(end?.minutes == 60)
        #expect(end?.verdict == .rollBack("audio had records before, and none for an hour"))
        var other = gate
        for _ in 0..<9 { #expect(other.observe(silent) == .undecided) }
        silent.newest = ["audio": 8]
        #expect(other.observe(silent) == .keep)
    }
}
