// Recordings of real receivers through a real gpsd: the kept fixes against what gpsd's own suite expects.
import Foundation
import Host
import Queue
import Records
import SourceSupport
import StatusBoard
import Support
import Testing

import Location

@Suite(.serialized, .enabled(if: Tree.hasTool("gpsd"), "deploy/test --prepare unpacks gpsd"))
struct RecordingTests {
    private static let folder = Tree.root.appendingPathComponent("Tests/Fixtures/gpsd")

    /// The values of a fix, its time without the rollover, which gpsd releases correct differently.
    private struct Kept: Equatable, CustomStringConvertible {
        var time: Int64
        var mode: Int
        var numbers: [String: Double]

        var description: String { "\(time) \(mode) \(numbers.sorted { $0.key < $1.key })" }

        init(_ fix: Fix) {
            time = Self.inEra(fix.receiverTime?.milliseconds ?? -1)
            mode = fix.mode.rawValue
            numbers = ["lat": fix.latitude, "lon": fix.longitude]
            numbers["altMSL"] = fix.altitude
            numbers["speed"] = fix.speed
            numbers["track"] = fix.course
        }

        /// All TPVs of one time.
        init?(_ reports: [[String: Any]]) {
            guard let text = reports[0]["time"] as? String, let wall = WallTime(rfc3339: text)
            else { return nil }
            time = Self.inEra(wall.milliseconds)
            mode = reports.compactMap { $0["mode"] as? Int }.max() ?? 0
            numbers = [:]
            for name in ["lat", "lon", "altMSL", "speed", "track"] {
                numbers[name] = reports.compactMap { $0[name] as? Double }.last
            }
            if mode < 2 || numbers["lat"] == nil || numbers["lon"] == nil { return nil }
        }

        private static func inEra(_ milliseconds: Int64) -> Int64 {
            milliseconds % (1024 * 7 * 86_400_000)
        }
    }

    private static func lines(_ name: String) throws -> [Data] {
        try Data(contentsOf: folder.appendingPathComponent(name)).split(
            separator: 10,
            omittingEmptySubsequences: false
        )
    }

    /// The fixes that a `.chk` file stands for.
    private static func expected(_ name: String) throws -> [Kept] {
        var epochs: [[[String: Any]]] = []
        for line in try lines("\(name).log.chk") where !line.isEmpty {
            let report = try JSONSerialization.jsonObject(with: line) as? [String: Any] ?? [:]
            let time = report["time"] as? String
            if !epochs.isEmpty, time == nil || epochs.last?[0]["time"] as? String == time {
                epochs[epochs.count - 1].append(report)
            } else if time != nil {
                epochs.append([report])
            }
        }
        return epochs.compactMap { Kept($0) }
    }

    /// The recording in pieces as a line gives them, without the comments before it.
    private static func pieces(_ name: String) throws -> [[UInt8]] {
        let all = try lines("\(name).log")
        return all.drop { $0.first == UInt8(ascii: "#") }.map { Array($0) + [10] }
    }

    /// Plays a recording; the source has seen all of it when this returns.
    private static func play(
        _ name: String,
        until isDone: (AdapterFixture) -> Bool
    ) throws -> AdapterFixture {
        let daemon = try GPSDaemon()
        try daemon.plugIn()
        try daemon.start()
        let fixture = try AdapterFixture(port: daemon.port)
        try waitUntil("gpsd has opened the receiver") {
            fixture.board.state.value?.device.contains("/dev/pts") == true
        }
        for piece in try pieces(name) {
            try daemon.feedAll(piece)
            // A serial line takes its time; all at once is what no receiver does.
            usleep(2000)
        }
        try waitUntil("\(name) was taken in") { isDone(fixture) }
        daemon.kill()
        try waitUntil("the end of gpsd is reported") { fixture.reason != nil }
        fixture.finish()
        return fixture
    }

    @Test(arguments: [
        "april6_2019", "bu303-climbing", "bu303-stillfix", "gp-320fw-2019-04-06-overflow",
        "gp-320fw-2019-04-07-coldboot", "mt3339", "neo-m8n", "quectel-l76k-nmea", "skytraq-fix",
        "trimble-lassen_iq-3dfix", "ublox-8",
    ])
    func recording_keepsWhatGPSDMustReport(name: String) throws {
        let expected = try Self.expected(name)
        let last = try #require(expected.last)
        let fixture = try Self.play(name) { $0.sink.fixes.contains { Kept($0) == last } }
        let kept = fixture.sink.fixes.map { Kept($0) }
        for one in expected {
            #expect(kept.contains(one), "\(one) is missing: \(kept.filter { $0.time == one.time })")
        }
        // gpsd 3.22 has three epochs more of this receiver than the release that wrote the file.
        let more = name.hasPrefix("trimble") ? 3 : 0
        #expect((0...more).contains(kept.count - expected.count))
        // All of them were made before the release.
        #expect(fixture.sink.times.isEmpty)
    }

    @Test(arguments: ["bu303-nofix", "tn200"])
    func receiverWithoutAFix_isNoError_andKeepsNothing(name: String) throws {
        #expect(try Self.expected(name).isEmpty)
        let fixture = try Self.play(name) {
            $0.detail.hasPrefix("no fix") && $0.isLoaded
        }
        #expect(fixture.sink.fixes.isEmpty)
        #expect(fixture.dropped == 0)
    }
}
