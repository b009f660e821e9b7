// When a receiver's time is evidence: three agreeing 3D fixes, by hand and from a real gpsd.
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

@Suite struct ReceiverTimeTests {
    private static let boot = BootInstant(nanoseconds: 60_000_000_000)
    private static let now = WallTime(milliseconds: 1_795_235_407_000)

    /// A report of `time` seconds on the receiver's clock, heard after `heard` seconds.
    private struct Heard {
        var mode = 3
        var time: Double?
        var heard: Double
        var hasPlace = true

        init(_ time: Double?, at heard: Double, mode: Int = 3, hasPlace: Bool = true) {
            self.time = time
            self.heard = heard
            self.mode = mode
            self.hasPlace = hasPlace
        }
    }

    /// A report each second.
    private static func row(_ count: Int, mode: Int = 3, hasPlace: Bool = true) -> [Heard] {
        (0..<count).map { Heard(Double($0), at: Double($0), mode: mode, hasPlace: hasPlace) }
    }

    private static func evidence(_ reports: [Heard], from start: WallTime = now) -> [Stamp] {
        var receivers = Receivers()
        var evidence = reports.compactMap { report in
            var position = GPSReport.Position(mode: report.mode)
            position.time = report.time.map { start + .milliseconds(Int64($0 * 1000)) }
            if report.hasPlace {
                position.latitude = 46.5
                position.longitude = 6.8
            }
            let boot = boot + .milliseconds(Int64(report.heard * 1000))
            // The board's own wall clock plays no part.
            let stamp = Stamp(boot: boot, wall: WallTime(milliseconds: 0))
            return receivers.receive(position, from: "/dev/x", at: stamp).time
        }
        let end = boot + .milliseconds(Int64((reports.last?.heard ?? 0) * 1000))
        evidence += receivers.flush(now: end, isAll: true).compactMap(\.time)
        return evidence
    }

    @Test func threeAgreeingFixes_areEvidence_withTheirLeastDelay() {
        let found = Self.evidence([Heard(0, at: 0.6), Heard(1, at: 1.2), Heard(2, at: 2.9)])
        #expect(
            found == [
                Stamp(boot: Self.boot + .milliseconds(1200), wall: Self.now + .seconds(1))
            ]
        )
    }

    @Test func twoFixes_areNot() {
        #expect(Self.evidence([Heard(0, at: 0), Heard(1, at: 1)]).isEmpty)
    }

    @Test func timeReportedAgainAndAgain_countsOnce() {
        let again = (0..<20).map { (at: Int) in Heard(0, at: Double(at)) }
        #expect(Self.evidence(again).isEmpty)
        #expect(Self.evidence(again + [Heard(20, at: 20)]).isEmpty)
        // Several reports an epoch, as many receivers give them.
        var pieces: [Heard] = []
        for second in [0.0, 1, 2] {
            pieces.append(Heard(second, at: second))
            pieces.append(Heard(second, at: second + 0.1))
        }
        #expect(Self.evidence(pieces).count == 1)
    }

    @Test func gulpOfAFastReceiver_isNoEvidence() {
        // Ten reports a second that waited in gpsd while it was stopped: they agree, but not on what is now.
        let gulp = (0..<50).map { Heard(Double($0) / 10, at: 60 + Double($0) / 10_000) }
        #expect(Self.evidence(gulp).isEmpty)
        let live = (0..<20).map { Heard(60.1 + Double($0) / 10, at: 60.1 + Double($0) / 10) }
        let found = Self.evidence(gulp + live)
        #expect(!found.isEmpty)
        #expect(
            found.allSatisfy {
                ($0.wall.milliseconds - Self.now.milliseconds) == ($0.boot - Self.boot).milliseconds
            }
        )
    }

    @Test func disagreement_isNoEvidence_untilThreeAgree() {
        // A receiver that still counts with its own crystal, then gets the time from the sky.
        let late = [Heard(0, at: 0), Heard(1, at: 1), Heard(7202, at: 2), Heard(7203, at: 3)]
        #expect(Self.evidence(late).isEmpty)
        #expect(Self.evidence(late + [Heard(7204, at: 4)]).count == 1)
        // Each pair within a second, all three not: a replay that runs too fast.
        #expect(Self.evidence([Heard(0, at: 0), Heard(1, at: 0.1), Heard(2, at: 0.2)]).isEmpty)
        // A time that goes back.
        #expect(Self.evidence([Heard(2, at: 0), Heard(1, at: 0.5), Heard(0, at: 1)]).isEmpty)
        // Reports from before a pause come in one gulp: no boot time passed between them.
        #expect(Self.evidence([Heard(0, at: 9), Heard(0.3, at: 9), Heard(0.6, at: 9)]).isEmpty)
    }

    @Test(arguments: [0, 1, 2])
    func fixesThatAreNot3D_countForNothing_andBreakTheRow(mode: Int) {
        #expect(Self.evidence(Self.row(10, mode: mode)).isEmpty)
        let broken = [Heard(0, at: 0), Heard(1, at: 1), Heard(2, at: 2, mode: mode)]
        #expect(Self.evidence(broken + [Heard(3, at: 3), Heard(4, at: 4)]).isEmpty)
        #expect(
            Self.evidence(broken + [Heard(3, at: 3), Heard(4, at: 4), Heard(5, at: 5)]).count == 1
        )
    }

    @Test func partialEpochs_doNotInterruptTheSequence() {
        var epochs: [Heard] = []
        for second in [0.0, 1, 2] {
            epochs.append(Heard(second, at: second, mode: 2))
            epochs.append(Heard(second, at: second + 0.1))
            epochs.append(Heard(nil, at: second + 0.2))
            epochs.append(Heard(second, at: second + 0.3, mode: 2))
        }
        #expect(Self.evidence(epochs).count == 1)
    }

    @Test func reportsWithoutAPlaceOrATime_countForNothing() {
        #expect(Self.evidence(Self.row(5, hasPlace: false)).isEmpty)
        #expect(Self.evidence([0.0, 1, 2, 3].map { Heard(nil, at: $0) }).isEmpty)
        let lost = [Heard(0, at: 0), Heard(1, at: 1), Heard(nil, at: 2, mode: 1), Heard(3, at: 3)]
        #expect(Self.evidence(lost).isEmpty)
    }

    @Test func timesBeforeTheRelease_areNotEvidence_laterOnesAre() throws {
        let good = Self.row(3)
        for text in ["1970-01-01T00:00:00Z", "1999-08-22T00:02:31Z", "2026-10-31T23:59:57Z"] {
            let start = try #require(WallTime(rfc3339: text))
            #expect(Self.evidence(good, from: start).isEmpty, "\(text)")
        }
        // 1024 weeks on, the same date could be meant: a receiver that is a rollover ahead.
        for text in ["2046-06-17T00:00:00Z", "2079-01-01T00:00:00Z"] {
            let start = try #require(WallTime(rfc3339: text))
            #expect(Self.evidence(good, from: start).isEmpty, "\(text)")
        }
        for text in ["2026-11-01T00:00:00Z", "2038-01-19T03:14:06Z", "2038-11-21T00:00:00Z"] {
            let start = try #require(WallTime(rfc3339: text))
            #expect(Self.evidence(good, from: start).count == 1, "\(text)")
        }
    }

    // MARK: A real gpsd

    /// A receiver played by gpsfake, and the evidence that the source finds in it.
    private final class Player {
        let sink = RecordingSink()
        let board = Publisher<SourceReport>()
        private let route = NSTemporaryDirectory() + "route-\(UUID().uuidString).nmea"
        private let gpsfake = Process()
        private let stop: StopSignal
        private var thread: OwnThread?

        /// `cycle`: seconds a sentence, four sentences a second of the walk.
        init(start: String, cycle: Double) throws {
            let root = Tree.root
            let script = "\(root.path)/Tests/Peers/route.py"
            try run(
                "/bin/sh",
                ["-c", "python3 '\(script)' --start \(start) --minutes 2 > '\(route)'"]
            )
            let port = freePort()
            gpsfake.executableURL = URL(fileURLWithPath: Tree.tool("gpsfake"))
            gpsfake.arguments = ["-q", "-P", "\(port)", "-c", "\(cycle)", route]
            gpsfake.standardOutput = FileHandle.nullDevice
            gpsfake.standardError = FileHandle.nullDevice
            try gpsfake.run()
            let stop = try StopSignal()
            var settings = LocationSettings()
            settings.gpsd = HostPort(host: "127.0.0.1", port: port)
            settings.interval = .milliseconds(1)
            let adapter = try LocationAdapter(
                settings: settings,
                sink: sink,
                board: board,
                clock: SystemClock()
            )
            self.stop = stop
            thread = try OwnThread("location") { adapter.run(until: stop) }
        }

        func finish() {
            stop.raise()
            if let thread = thread.take() { thread.join() }
            // gpsfake has a gpsd of its own, and Process makes a group of the two: all of it goes.
            kill(-gpsfake.processIdentifier, SIGKILL)
            gpsfake.waitUntilExit()
            try? FileManager.default.removeItem(atPath: route)
        }
    }

    @Test(
        .enabled(if: Tree.hasTool("gpsfake"), "deploy/test --prepare unpacks it"),
        arguments: ["2026-12-24T18:00:00", "2038-01-19T03:13:00"]
    )
    func realGPSD_replayingAWalkAtItsOwnPace_isEvidence(start: String) throws {
        let player = try Player(start: start, cycle: 0.25)
        defer { player.finish() }
        try waitUntil("evidence") { !player.sink.times.isEmpty }
        let found = try #require(player.sink.times.first)
        let began = try #require(WallTime(rfc3339: start + "Z"))
        #expect(found.wall > began)
        #expect(found.wall < began + .seconds(120))
        #expect(found.boot <= SystemClock().now())
    }

    @Test(.enabled(if: Tree.hasTool("gpsfake"), "deploy/test --prepare unpacks it"))
    func realGPSD_atTheWrongPace_isNoEvidence() throws {
        let player = try Player(start: "2026-12-24T18:00:00", cycle: 0.01)
        defer { player.finish() }
        try waitUntil("eight fixes") { player.sink.fixes.count >= 8 }
        #expect(player.sink.times.isEmpty)
    }

    @Test(.enabled(if: Tree.hasTool("gpsfake"), "deploy/test --prepare unpacks it"))
    func gpsdWithPastDate_isNotEvidence_butFixesAreKept() throws {
        let player = try Player(start: "2026-06-01T10:00:00", cycle: 0.25)
        defer { player.finish() }
        try waitUntil("eight fixes") { player.sink.fixes.count >= 8 }
        #expect(player.sink.times.isEmpty)
        #expect(player.board.state.value?.dropped == 0)
        let reported = player.board.state.value?.detail ?? ""
        #expect(reported.hasSuffix("; its date 2026-06-01 is before this release, not used"))
    }
}
