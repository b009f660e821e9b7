// The whole source against a real gpsd, and against a server that only pretends to be one.
import CLinux
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

@Suite struct GPSDTests {
    /// An adapter that runs, and what it made of its input.
    private final class Fixture {
        let sink = RecordingSink()
        let board = Publisher<SourceReport>()
        private let stop: StopSignal
        private var thread: OwnThread?

        init(port: UInt16, interval: Duration = .milliseconds(1)) throws {
            let stop = try StopSignal()
            var settings = LocationSettings()
            settings.gpsd = HostPort(host: "127.0.0.1", port: port)
            settings.interval = interval
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
        }

        var failure: Failure? {
            if case .error(let failure, _) = board.state { failure } else { nil }
        }
    }

    @Test(.enabled(if: Tree.hasTool("gpsfake"), "deploy/test --prepare unpacks it"))
    func realGPSD_replayingAWalk_givesItsFixes() throws {
        let root = Tree.root
        let route = NSTemporaryDirectory() + "route-\(UUID().uuidString).nmea"
        defer { try? FileManager.default.removeItem(atPath: route) }
        try run(
            "/bin/sh",
            [
                "-c",
                "python3 '\(root.path)/Tests/Peers/route.py' --start 2026-06-01T10:00:00 --minutes 2 > '\(route)'",
            ]
        )
        let port = freePort()
        let gpsfake = Process()
        gpsfake.executableURL = URL(fileURLWithPath: Tree.tool("gpsfake"))
        gpsfake.arguments = ["-q", "-P", "\(port)", "-c", "0.02", route]
        gpsfake.standardOutput = FileHandle.nullDevice
        gpsfake.standardError = FileHandle.nullDevice
        try gpsfake.run()
        defer {
            // gpsfake has a gpsd of its own, and Process makes a group of the two: all of it goes.
            kill(-gpsfake.processIdentifier, SIGKILL)
            gpsfake.waitUntilExit()
        }
        let fixture = try Fixture(port: port)
        defer { fixture.finish() }
        try waitUntil("twenty fixes") { fixture.sink.fixes.count >= 20 }
        let fixes = fixture.sink.fixes
        for fix in fixes {
            // Within the loop, in the order of the walk, with what a receiver reports.
            #expect((46.458...46.463).contains(fix.latitude))
            #expect((6.842...6.848).contains(fix.longitude))
            #expect(fix.mode == .threeDimensional)
            #expect(fix.altitude.map { (370...385).contains($0) } == true)
            // A client that joins in the middle of an epoch may get its rest, which has no time.
            #expect(
                fix == fixes.first
                    || fix.receiverTime.map { $0.rfc3339.hasPrefix("2026-06-01T10:0") } == true
            )
        }
        let times = fixes.compactMap { $0.receiverTime?.milliseconds }
        #expect(times == times.sorted())
        #expect(Set(times).count == times.count)
        #expect(fixture.board.state.value?.detail.hasPrefix("3D fix") == true)
        #expect(fixture.board.state.value?.device.hasPrefix("127.0.0.1:\(port) /dev/") == true)
    }

    @Test func absentGPSD_isNamed_andTheProcessLives() throws {
        let port = freePort()
        let fixture = try Fixture(port: port)
        defer { fixture.finish() }
        try waitUntil("the failure is reported") { fixture.failure != nil }
        #expect(fixture.failure?.message.hasPrefix("gpsd at 127.0.0.1:\(port): ") == true)
        #expect(fixture.failure?.message.contains("systemctl status gpsd") == true)
    }

    @Test func brokenLines_areCounted_andARestartReconnects() throws {
        let good =
            #"{"class":"TPV","device":"/dev/x","mode":3,"time":"2026-06-01T10:00:0%.000Z","lat":46.5,"lon":6.8,"altMSL":377.0}"#
        let hostile = [
            #"{"class":"TPV","mode":"three","lat":"x"}"#,
            #"{"class":"TPV","mode":3,"lat":99999,"lon":6}"#,
            #"{"class":"TPV""#, "garbage", String(repeating: "x", count: 10_240 * 2),
            String(repeating: "x", count: GPSDLine.limit + 9000),
            #"{"class":"SKY","satellites":["#
                + String(repeating: #"{"PRN":1,"used":true},"#, count: 400) + "{}]}",
            #"{"class":"TPV","mode":3}"#, "\u{0}\u{1}", #"{"class":"DEVICES","devices":[{}]}"#,
        ]
        let server = try LineServer { connection in
            var lines = [good.replacingOccurrences(of: "%", with: "\(connection)")]
            lines += hostile
            lines.append(good.replacingOccurrences(of: "%", with: "\(connection + 5)"))
            return lines.map { $0 + "\r\n" }.joined()
        }
        defer { server.close() }
        let fixture = try Fixture(port: server.port)
        defer { fixture.finish() }
        // Each connection is closed after its lines: two of them show that it comes back.
        try waitUntil("fixes of two connections") { fixture.sink.fixes.count >= 3 }
        #expect(fixture.sink.fixes.allSatisfy { $0.latitude == 46.5 && $0.longitude == 6.8 })
        #expect((fixture.board.state.value?.dropped ?? 0) > 0)
        try waitUntil("a restart is counted") { (fixture.board.state.value?.restarts ?? 0) >= 1 }
    }

    @Test func modeThatThereIsNot_hidesNoFix() throws {
        let good =
            #"{"class":"TPV","device":"/dev/x","mode":3,"time":"2026-12-01T10:00:00.000Z","lat":46.5,"lon":6.8}"#
        let odd = good.replacingOccurrences(of: "\"mode\":3", with: "\"mode\":7")
        let server = try LineServer { _ in good + "\r\n" + odd + "\r\n" }
        defer { server.close() }
        let fixture = try Fixture(port: server.port)
        defer { fixture.finish() }
        try waitUntil("a fix", limit: .seconds(20)) { !fixture.sink.fixes.isEmpty }
        #expect(fixture.sink.fixes.first?.mode == .threeDimensional)
    }

    /// gpsd 3.23 and later sends skies of dilutions alone between those with satellites; 3.25 and later with
    /// their number, of most receivers.
    @Test(
        arguments: [
            (#"{"class":"SKY","device":"/dev/x","hdop":0.8}"#, nil),
            (
                #"{"class":"SKY","device":"/dev/x","nSat":2,"uSat":1,"satellites":[{"PRN":1,"used":true},{"PRN":2,"used":false}]}"#,
                1
            ),
            (#"{"class":"SKY","device":"/dev/x","hdop":1.40,"pdop":2.60,"vdop":2.10,"uSat":9}"#, 9),
            (#"{"class":"SKY","device":"/dev/x","nSat":0,"uSat":0}"#, 0),
            (#"{"class":"SKY","device":"/dev/x","uSat":99999999999}"#, nil),
            (#"{"class":"SKY","device":"/dev/x","uSat":-3}"#, nil),
        ] as [(String, Int?)]
    )
    func satellites_areOnlyThoseOfASkyThatNamesThem(sky: String, satellites: Int?) throws {
        let fix =
            #"{"class":"TPV","device":"/dev/x","mode":3,"time":"2026-12-01T10:00:00.000Z","lat":46.5,"lon":6.8}"#
        let server = try LineServer { _ in sky + "\r\n" + fix + "\r\n" }
        defer { server.close() }
        let fixture = try Fixture(port: server.port)
        defer { fixture.finish() }
        try waitUntil("a fix") { !fixture.sink.fixes.isEmpty }
        #expect(fixture.sink.fixes.first?.satellites == satellites)
    }

    @Test func randomLines_neverHarmTheProcess() throws {
        var random = SeededRandom(seed: 7)
        let seeds = [
            #"{"class":"TPV","mode":3,"time":"2026-06-01T10:00:00.000Z","lat":46.5,"lon":6.8,"eph":1e400}"#,
            #"{"class":"SKY","uSat":5,"satellites":[{"PRN":1,"el":3,"az":4,"ss":5,"used":true}]}"#,
        ]
        let text = (0..<20_000).map { _ in random.mutated(seeds) }.joined(separator: "\n") + "\n"
        let end =
            #"{"class":"TPV","mode":3,"time":"2027-06-01T10:00:00.000Z","lat":1.5,"lon":2.5}"#
            + "\n"
        let server = try LineServer { _ in "\n" + text + end + end }
        defer { server.close() }
        let fixture = try Fixture(port: server.port)
        defer { fixture.finish() }
        try waitUntil("the last line has been read") {
            fixture.board.state.value?.restarts ?? 0 >= 1
                || fixture.sink.fixes.contains { $0.latitude == 1.5 }
        }
        #expect(
            fixture.sink.fixes.allSatisfy {
                (-90...90).contains($0.latitude) && $0.longitude.isFinite
            }
        )
    }
}
