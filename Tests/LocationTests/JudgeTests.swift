// Which fixes are believed, and which receiver is followed: the rules alone.
import Configuration
import Foundation
import Host
import Queue
import Records
import StatusBoard
import SourceSupport
import Support
import Testing

@testable import Location

@Suite struct FixJudgeTests {
    private static let start = testStart

    /// A fix heard after `heard` seconds that says `said` seconds, so many degrees north.
    private func fix(
        _ heard: Double,
        said: Double? = nil,
        north: Double = 0,
        error: Double? = nil
    ) -> Fix {
        var fix = Fix(
            stamp: Self.start.advanced(by: .milliseconds(Int64(heard * 1000))),
            mode: .threeDimensional,
            latitude: 46.5 + north,
            longitude: 6.8
        )
        fix.receiverTime = Self.start.wall + .milliseconds(Int64((said ?? heard) * 1000))
        fix.horizontalAccuracy = error
        return fix
    }

    private func refusals(_ fixes: [Fix]) -> [FixRefusal?] {
        var evaluate = FixEvaluator()
        return fixes.map { evaluate.evaluate($0, now: $0.stamp.boot) }
    }

    @Test func dates_ofOneEraFromTheRelease_areBelieved() throws {
        let cases: [(String, String?)] = [
            ("1999-08-22T00:02:31Z", "its date 1999-08-22 is before this release, not used"),
            ("2002-11-14T14:32:55Z", "its date 2002-11-14 is before this release, not used"),
            ("2026-10-31T23:59:59Z", "its date 2026-10-31 is before this release, not used"),
            ("2026-11-01T00:00:00Z", nil), ("2038-11-21T00:00:00Z", nil),
            ("2046-06-16T23:59:59Z", nil),
            ("2046-07-07T04:30:07Z", "its date 2046-07-07 is implausible, not used"),
        ]
        for (text, words) in cases {
            let time = try #require(WallTime(rfc3339: text))
            #expect(ReceiverTime.doubt(time) == words, "\(text)")
        }
    }

    @Test func rolloverInTheMiddle_costsNothing() throws {
        let era = 1024.0 * 7 * 86_400
        let back = (0..<60).map { fix(Double($0), said: Double($0) - ($0 < 30 ? 0 : era)) }
        #expect(refusals(back).allSatisfy { $0 == nil })
        let forth = (0..<60).map { fix(Double($0), said: Double($0) - ($0 < 30 ? era : 0)) }
        #expect(refusals(forth).allSatisfy { $0 == nil })
    }

    @Test func fixThatWaited_isTooOldAfterTenSeconds() {
        // Heard all at once after a minute: only those of the last ten seconds are fresh.
        let gulp = (1...60).map { fix(60 + Double($0) / 1000, said: Double($0)) }
        let found = refusals([fix(0)] + gulp)
        #expect(found[0] == nil)
        for (age, refusal) in zip((0..<60).reversed(), found.dropFirst()) {
            if age == 10 { continue }
            #expect((refusal == nil) == (age < 10), "\(age) s: \(String(describing: refusal))")
        }
    }

    /// `live`: seconds of the loss before this program, or gpsd, stood still until second 80.
    @Test(arguments: [0, 5, 15])
    func fixThatWaited_isTooOld_alsoAfterALossOfTheFix(live: Int) {
        var evaluate = FixEvaluator()
        #expect(evaluate.evaluate(fix(0), now: Self.start.boot) == nil)
        for second in 1..<21 {
            let heard = second <= live ? Double(second) : 80
            evaluate.lostFix(at: Self.start.boot + .seconds(heard))
        }
        for second in 21..<65 {
            let late = fix(80 + Double(second) / 1000, said: Double(second))
            #expect(evaluate.evaluate(late, now: late.stamp.boot) != nil, "\(second)")
        }
    }

    @Test func stuckReceiverTime_isTooOldAfterTenSeconds() {
        let found = refusals((0...100).map { fix(Double($0), said: 0) })
        #expect(found.prefix(11).allSatisfy { $0 == nil })
        #expect(found.dropFirst(11).allSatisfy { $0 != nil })
        #expect(
            found.last??.message == "GNSS receiver's time is stuck at \(Self.start.wall.rfc3339)"
        )
    }

    @Test func receiverCorrectingBackwards_isTrustedAtOnce() {
        let before = (0..<30).map { fix(Double($0), said: Double($0) + 18) }
        let found = refusals(before + (30..<60).map { fix(Double($0)) })
        #expect(found.allSatisfy { $0 == nil })
    }

    /// Its fixes are so rare that their times go on.
    @Test func correctedRareFixes_areTrustedAfterTwoMinutes() {
        let before = (0..<10).map { fix(Double($0) * 30, said: Double($0) * 30 + 18) }
        let found = refusals(before + (10..<20).map { fix(Double($0) * 30) })
        #expect(found.prefix(10).allSatisfy { $0 == nil })
        #expect(found[10] == .late(.seconds(18)))
        #expect(found.suffix(6).allSatisfy { $0 == nil })
    }

    @Test func clocksThatDriftApart_makeNoFixOld() {
        // 100 ppm for three days, a fix a minute: 26 s in all.
        let found = refusals((0..<4320).map { fix(Double($0) * 60, said: Double($0) * 59.994) })
        #expect(found.allSatisfy { $0 == nil })
    }

    @Test func fixThatWasHeldBackByUs_isTooOld() {
        var evaluate = FixEvaluator()
        #expect(evaluate.evaluate(fix(0), now: Self.start.boot + .seconds(10)) == nil)
        #expect(
            evaluate.evaluate(fix(1), now: Self.start.boot + .seconds(12)) == .late(.seconds(11))
        )
    }

    @Test func placesThatAreNone_areRefused() {
        var nowhere = fix(0)
        nowhere.latitude = 0
        nowhere.longitude = 0
        #expect(refusals([nowhere]) == [.nowhere])
        nowhere.longitude = 6.8
        #expect(refusals([nowhere]) == [nil])
        #expect(refusals([fix(0, error: 1000), fix(1, error: 1001)]) == [nil, .vague(1001)])
    }

    @Test func jump_isRefused_untilThreeFixesAgree() {
        // A degree is 111 km: an airliner takes five minutes.
        let glitch = [fix(0), fix(1, north: 1), fix(2), fix(3)]
        #expect(refusals(glitch).map { $0 == nil } == [true, false, true, true])
        let moved = [fix(0)] + (1...4).map { fix(Double($0), north: 1) }
        #expect(refusals(moved).map { $0 == nil } == [true, false, false, true, true])
        let scattered = [fix(0)] + (1...6).map { fix(Double($0), north: Double($0)) }
        #expect(refusals(scattered).dropFirst().allSatisfy { $0 != nil })
        #expect(refusals([fix(0), fix(400, north: 1)]) == [nil, nil])
        #expect(refusals(moved)[1]?.message == "jump of 111 km")
    }
}

@Suite struct ReceiversTests {
    private static let start = testStart

    /// One report a second of each receiver, `b` a tenth of a second after `a`; what the session keeps.
    private struct Fixture {
        var mode = 3
        var error: Double?
        var satellites: Int?
        var isThere = true
    }

    private func keep(
        seconds: Int,
        _ reports: (_ second: Int) -> (a: Fixture, b: Fixture)
    ) -> [Fix] {
        let sink = RecordingSink()
        var session = LocationSession(
            settings: LocationSettings {
                $0.gpsd = HostPort(host: "h", port: 1)
                $0.interval = .seconds(1)
            },
            sink: sink,
            board: Publisher<SourceReport>()
        )
        session.connected(Self.start.boot)
        for second in 0..<seconds {
            let at = Self.start.advanced(by: .seconds(second))
            let (a, b) = reports(second)
            for (path, fixture, latitude) in [("/dev/x", a, 46.0), ("/dev/b", b, 46.0001)]
            where fixture.isThere {
                let stamp = at.advanced(by: .milliseconds(path == "/dev/x" ? 0 : 100))
                if let count = fixture.satellites {
                    session.receive(.sky(used: count), from: path, at: stamp)
                }
                var position = GPSReport.Position(mode: fixture.mode)
                // Both give the time of the second.
                position.time = at.wall
                position.latitude = fixture.mode > 1 ? latitude : nil
                position.longitude = fixture.mode > 1 ? 6 : nil
                // The altitude of one must not be combined with the position of the other.
                position.altitude = fixture.mode > 2 ? latitude * 10 : nil
                position.horizontalAccuracy = fixture.error
                session.receive(.position(position), from: path, at: stamp)
                session.update(stamp.boot)
            }
        }
        session.disconnected(Self.start.boot + .seconds(seconds + 3))
        #expect(
            sink.fixes.allSatisfy {
                ($0.mode == .threeDimensional) == ($0.altitude == $0.latitude * 10)
            }
        )
        return sink.fixes
    }

    @Test func equalReceivers_areNeitherMixedNorAlternated() {
        let fixes = keep(seconds: 60) { second in
            (
                Fixture(error: second % 2 == 0 ? 4 : 6, satellites: 8),
                Fixture(error: second % 2 == 0 ? 6 : 4, satellites: 8 + second % 3)
            )
        }
        #expect(fixes.count >= 55)
        #expect(fixes.allSatisfy { $0.latitude == 46 && $0.satellites == 8 })
    }

    @Test func betterMode_isFollowedAtOnce() {
        let fixes = keep(seconds: 20) { second in
            (Fixture(mode: 2), Fixture(mode: second < 8 ? 1 : 3))
        }
        #expect(fixes.prefix { $0.latitude == 46 }.count >= 7)
        let rest = fixes.drop { $0.latitude == 46 }
        #expect(rest.count >= 9)
        #expect(rest.allSatisfy { $0.latitude == 46.0001 && $0.mode == .threeDimensional })
    }

    @Test(arguments: [false, true])
    func betterAccuracy_isFollowed_onlyIfItLasts(lasts: Bool) {
        let fixes = keep(seconds: 40) { second in
            (Fixture(error: 20), Fixture(error: lasts || second % 5 < 4 ? 3 : 30))
        }
        #expect(Set(fixes.map(\.latitude)) == (lasts ? [46, 46.0001] : [46]))
        #expect(fixes.last?.latitude == (lasts ? 46.0001 : 46))
    }

    @Test func moreSatellites_decideWhereNoAccuracyIsKnown() {
        let fixes = keep(seconds: 40) { _ in (Fixture(satellites: 5), Fixture(satellites: 9)) }
        #expect(fixes.last?.latitude == 46.0001)
        #expect(fixes.last?.satellites == 9)
    }

    @Test func receiverThatLosesItsFix_orIsSilent_isReplaced() {
        for isThere in [true, false] {
            let fixes = keep(seconds: 60) { second in
                (Fixture(mode: second < 20 ? 3 : 1, isThere: second < 20 || isThere), Fixture())
            }
            #expect(fixes.last?.latitude == 46.0001)
            #expect(fixes.count > 40)
            // Once, and never back.
            #expect(fixes.drop { $0.latitude == 46 }.allSatisfy { $0.latitude == 46.0001 })
        }
    }

    /// The times that count of receivers which report once a second, and are so many seconds behind.
    private func times(
        _ receivers: [(path: String, mode: Int, behind: Int)],
        seconds: Int = 30
    ) -> [WallTime] {
        var all = Receivers()
        var times: [WallTime] = []
        for second in 0..<seconds {
            for (path, mode, behind) in receivers {
                let stamp = Self.start.advanced(by: .seconds(second))
                var position = GPSReport.Position(mode: mode)
                (position.latitude, position.longitude) = (46, 6)
                position.time = stamp.wall + .seconds(-behind)
                if let time = all.receive(position, from: path, at: stamp).time {
                    times.append(time.wall(at: Self.start.boot))
                }
            }
        }
        return times
    }

    /// The one that is followed knows the place, and not the date.
    @Test func rolledOverReceiver_leavesTimeToOneOther() {
        let era = 1024 * 7 * 86_400
        for mode in [2, 3] {
            let reported = times([("/dev/x", 3, era), ("/dev/b", mode, 0), ("/dev/c", 3, 18)])
            #expect(reported.count >= 10)
            // Two that tell different times do not take turns.
            #expect(Set(reported) == [Self.start.wall + .seconds(mode == 3 ? 0 : -18)])
        }
        // While the one that is followed tells the time, it alone does.
        let reported = times([("/dev/x", 3, 0), ("/dev/b", 3, 18), ("/dev/c", 3, era)])
        #expect(reported.count >= 20 && Set(reported) == [Self.start.wall])
    }

    /// A gpsd may name devices without end; only so many are kept.
    @Test func endlessNames_leaveTheFollowedReceiver() {
        let others = (0..<3 * Receivers.limit).map { ("/dev/other\($0)", 3, 18) }
        let reported = times([("/dev/x", 3, 0)] + others)
        #expect(reported.count >= 20 && Set(reported) == [Self.start.wall])
    }

    @Test func unpluggedReceiver_leavesNoError_ifAnotherReports() {
        let board = Publisher<SourceReport>()
        var session = LocationSession(
            settings: LocationSettings { $0.gpsd = HostPort(host: "h", port: 1) },
            sink: RecordingSink(),
            board: board
        )
        session.connected(Self.start.boot)
        for second in 0..<5 {
            for path in ["/dev/x", "/dev/b"] {
                var position = GPSReport.Position(mode: 3)
                let stamp = Self.start.advanced(by: .seconds(second))
                (position.time, position.latitude, position.longitude) = (stamp.wall, 46, 6)
                session.receive(.position(position), from: path, at: stamp)
            }
        }
        let now = Self.start.advanced(by: .seconds(5))
        session.receive(.receiver(path: "/dev/x", isActive: false), from: "", at: now)
        guard case .loaded = board.state else { Issue.record("\(board.state)"); return }
        session.receive(.receiver(path: "/dev/b", isActive: false), from: "", at: now)
        guard case .error = board.state else { Issue.record("\(board.state)"); return }
    }
}
