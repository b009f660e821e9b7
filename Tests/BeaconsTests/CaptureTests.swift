// btsnoop captures: the recorded fixture against its expected output, the three datalinks, and junk.
import Configuration
import Foundation
import Host
import Queue
import Records
import StatusBoard
import SourceSupport
import Support
import Synchronization
import Testing

@testable import Beacons

/// Builds captures.
struct Capture {
    var bytes: [UInt8]

    init(datalink: UInt32, version: UInt32 = 1) {
        bytes = Array("btsnoop".utf8) + [0] + Self.word(version) + Self.word(datalink)
    }

    private static func word(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    mutating func add(_ data: [UInt8], flags: UInt32 = 3, at microseconds: UInt64 = 0) {
        let time = (0..<8).map { UInt8(truncatingIfNeeded: microseconds >> (56 - 8 * $0)) }
        let length = Self.word(UInt32(data.count))
        bytes += length + length + Self.word(flags) + Self.word(0) + time + data
    }
}

/// The lines that `record.py` writes for the sightings.
private func lines(_ sightings: [Sighting]) -> [String] {
    sightings.map {
        let identity = $0.identity
        return "\(identity.kind.name) \(identity.beaconID) \(identity.address) "
            + "\(identity.addressType.name) \($0.rssi ?? 127)"
    }
}

private let fixtures = Tree.root.appendingPathComponent("Tests/Fixtures/beacons")

@Suite struct CaptureTests {
    /// Replays the bytes as fast as it goes and gives what the board says at the end.
    private func replay(
        _ bytes: [UInt8],
        speed: Double = 0
    ) throws -> (sightings: [Sighting], state: BoardState<SourceReport>) {
        try withTemporaryFolder { folder in
            let path = folder + "/capture"
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return try replay(path: path, speed: speed)
        }
    }

    private func replay(
        path: String,
        speed: Double
    ) throws -> (sightings: [Sighting], state: BoardState<SourceReport>) {
        var settings = BeaconSettings { $0.source = .capture(path: path) }
        settings.replaySpeed = speed
        settings.maxRate = 1000
        let adapter = try RunningAdapter(settings)
        defer { adapter.stop() }
        #expect(eventually { adapter.isFinished })
        return (adapter.sink.sightings, adapter.board.state)
    }

    private func detail(_ state: BoardState<SourceReport>) -> String? {
        if case .loaded(let report) = state { return report.detail }
        return nil
    }

    private func failure(_ bytes: [UInt8]) throws -> String? {
        if case .error(let failure, _) = try replay(bytes).state { return failure.message }
        return nil
    }

    @Test func recorded_givesWhatIsExpected_stampedWithTheReplay() throws {
        let expected = try String(
            contentsOf: fixtures.appendingPathComponent("capture.expected"),
            encoding: .utf8
        ).split(separator: "\n").map(String.init)
        let before = SystemClock().stamp()
        let (sightings, state) = try replay(
            path: fixtures.appendingPathComponent("capture.btsnoop").path,
            speed: 0
        )
        let after = SystemClock().stamp()
        #expect(lines(sightings) == expected)
        #expect(expected.count > 20)
        #expect(detail(state) == "replay finished")
        #expect(state.value?.records == expected.count)
        #expect(state.value?.dropped == 0)
        #expect(sightings.allSatisfy { (before.boot...after.boot).contains($0.stamp.boot) })
        #expect(sightings.allSatisfy { (before.wall...after.wall).contains($0.stamp.wall) })
        let ruuvi = sightings.filter { $0.identity.kind == .ruuvi }.map(\.telemetry.byKey)
        #expect(ruuvi.last { !$0.isEmpty }?["humidity_percent"] == 5530)
        #expect(ruuvi.last { !$0.isEmpty }?["battery_mv"] == 2977)
        // Heard by legacy and extended reports, and each measurement is there once.
        let readings = ruuvi.filter { !$0.isEmpty }
        #expect(readings.count == Set(readings).count)
        #expect((2..<ruuvi.count).contains(readings.count))
    }

    @Test func speed_followsTheCapturesOwnSpacing() throws {
        var capture = Capture(datalink: 1002)
        let event = [4] + Event.legacy(Event.legacyReport(Sample.iBeacon))
        for index in 0..<4 as Range<UInt64> { capture.add(event, at: 9_000_000 + index * 400_000) }
        let (sightings, _) = try replay(capture.bytes, speed: 4)
        #expect(sightings.count == 4)
        // A replay is never ahead of its time; how far behind is the machine's affair.
        let first = try #require(sightings.first?.stamp.boot)
        for (index, sighting) in sightings.enumerated() {
            #expect(sighting.stamp.boot - first >= .milliseconds(100 * index - 50))
        }
    }

    /// A capture of a board that started in 1970, until a time server told it the time.
    @Test func clockStep_interruptsNeitherReplayNorPace() throws {
        let year: UInt64 = 31_536_000_000_000
        var capture = Capture(datalink: 1002)
        let event = [4] + Event.legacy(Event.legacyReport(Sample.iBeacon))
        let steps = [0, 56 * year, 56 * year - 86_400_000_000]
        for step in steps {
            for index in 0..<3 as Range<UInt64> { capture.add(event, at: step + index * 200_000) }
        }
        let (sightings, state) = try replay(capture.bytes, speed: 1)
        #expect(detail(state) == "replay finished")
        #expect(sightings.count == 9)
        let first = try #require(sightings.first?.stamp.boot)
        let last = try #require(sightings.last?.stamp.boot)
        #expect(last - first >= .milliseconds(1150))
    }

    @Test func time_thatRunsBackwardsOrOverflows_isReplayedAtOnce() throws {
        var capture = Capture(datalink: 1002)
        let event = [4] + Event.legacy(Event.legacyReport(Sample.iBeacon))
        for time in [UInt64.max / 2, 5, 0, UInt64.max] { capture.add(event, at: time) }
        #expect(try replay(capture.bytes, speed: 1).sightings.count == 4)
    }

    @Test func datalinks_areDistinguished() throws {
        let event = Event.extended(Event.extendedReport(Sample.iBeacon))
        var h4 = Capture(datalink: 1002)
        h4.add([1, 3, 0x0C, 0], flags: 2)
        h4.add([4] + event)
        h4.add([2] + event)
        var bare = Capture(datalink: 1001)
        bare.add([3, 0x0C, 0], flags: 2)
        bare.add(event, flags: 3)
        bare.add(event, flags: 1)
        var monitor = Capture(datalink: 2001)
        monitor.add([0, 0, 1, 2, 3, 4, 5, 6], flags: 0)
        monitor.add(event, flags: 3)
        monitor.add(event, flags: 1 << 16 | 3)
        monitor.add(event, flags: 2)
        #expect(try replay(h4.bytes).sightings.count == 1)
        #expect(try replay(bare.bytes).sightings.count == 1)
        #expect(try replay(monitor.bytes).sightings.count == 2)
    }

    @Test(arguments: [1, 20, 24, 40])
    func cutShort_keepsWhatCameBeforeAndSaysSo(missing: Int) throws {
        var capture = Capture(datalink: 1002)
        let event = [4] + Event.legacy(Event.legacyReport(Sample.iBeacon))
        for _ in 0..<3 { capture.add(event) }
        let (sightings, state) = try replay(Array(capture.bytes.dropLast(missing)))
        #expect(sightings.count == 2)
        #expect(detail(state) == "replay finished (the capture is cut short)")
    }

    @Test func damagedLength_endsTheReplayAndSaysSo() throws {
        var capture = Capture(datalink: 1002)
        capture.add([4] + Event.legacy(Event.legacyReport(Sample.iBeacon)))
        let end = capture.bytes.count
        capture.add([4])
        capture.bytes.replaceSubrange(end..<end + 8, with: [UInt8](repeating: 0xFF, count: 8))
        let (sightings, state) = try replay(capture.bytes)
        #expect(sightings.count == 1)
        #expect(detail(state) == "replay finished (the capture is cut short)")
    }

    @Test func emptyCapture_isFinishedAtOnce() throws {
        #expect(detail(try replay(Capture(datalink: 1002).bytes).state) == "replay finished")
    }

    @Test(arguments: [
        ("", "it is empty"), ("hello world, this is text", "begins with 68656c6c6f20776f"),
        ("btsnoop", "begins with 6274736e6f6f70"),
    ])
    func junk_isNamedForWhatItIs(text: String, words: String) throws {
        let message = try #require(try failure(Array(text.utf8)))
        #expect(message.contains(words))
        #expect(message.contains("/capture: not a btsnoop capture"))
    }

    @Test func otherVersionsAndDatalinks_areRefused() throws {
        #expect(try failure(Capture(datalink: 1003).bytes)?.contains("datalink 1003") == true)
        #expect(
            try failure(Capture(datalink: 1002, version: 2).bytes)?.contains("version 2") == true
        )
    }

    @Test func missingFileAndFolder_areFailures() throws {
        try withTemporaryFolder { folder in
            for (path, reason) in [(folder + "/none", "No such file"), (folder, "directory")] {
                guard case .error(let failure, _) = try replay(path: path, speed: 0).state else {
                    Issue.record("\(path) was read")
                    continue
                }
                #expect(failure.message.contains(path))
                #expect(failure.message.lowercased().contains(reason.lowercased()))
            }
        }
    }

    @Test func noise_neverTraps() throws {
        var generator = SeededRandom(seed: 5)
        var seed = Capture(datalink: 1002)
        for _ in 0..<20 { seed.add([4] + Event.legacy(Event.legacyReport(Sample.iBeacon))) }
        try withTemporaryFolder { folder in
            for round in 0..<500 {
                var bytes = seed.bytes
                for _ in 0..<8 {
                    bytes[Int.random(in: 16..<bytes.count, using: &generator)] =
                        UInt8(truncatingIfNeeded: generator.next())
                }
                let path = "\(folder)/\(round)"
                try Data(bytes).write(to: URL(fileURLWithPath: path))
                var file = try BtsnoopFile(path: path)
                var parser = ReportParser()
                var records = 0
                while let record = file.next() {
                    _ = parser.parse(record.event)
                    records += 1
                }
                #expect(records <= 20)
            }
        }
    }

    @Test func refusedSightings_areCountedAsDropped() throws {
        let path = fixtures.appendingPathComponent("capture.btsnoop").path
        var settings = BeaconSettings { $0.source = .capture(path: path) }
        settings.replaySpeed = 0
        settings.maxRate = 1000
        let adapter = try RunningAdapter(
            settings,
            sink: RecordingSink(sighting: { $0.identity.kind != .ruuvi })
        )
        defer { adapter.stop() }
        #expect(eventually { adapter.isFinished })
        let report = adapter.board.state.value
        #expect(report?.dropped == 10)
        #expect(report?.records == 36)
    }

    @Test func fullQueue_holdsAReplayBack_andDropsNothing() throws {
        try withTemporaryFolder { folder in
            var capture = Capture(datalink: 1002)
            let event = [4] + Event.legacy(Event.legacyReport(Sample.iBeacon))
            for _ in 0..<20 { capture.add(event) }
            let path = folder + "/capture"
            try Data(capture.bytes).write(to: URL(fileURLWithPath: path))
            var settings = BeaconSettings { $0.source = .capture(path: path) }
            settings.replaySpeed = 0
            settings.maxRate = 1000
            let room = Room(7)
            let sink = RecordingSink(
                hasRoom: { room.isLeft },
                sighting: { _ in
                    room.use()
                    return true
                }
            )
            let adapter = try RunningAdapter(settings, sink: sink)
            defer { adapter.stop() }
            #expect(eventually { room.askedInVain > 2 })
            #expect(sink.sightings.count == 7)
            room.add(100)
            #expect(eventually { adapter.isFinished })
            #expect(sink.sightings.count == 20)
            #expect(adapter.board.state.value?.dropped == 0)
        }
    }

    @Test func fullQueue_neverKeepsAStopWaiting() throws {
        let path = fixtures.appendingPathComponent("capture.btsnoop").path
        let adapter = try RunningAdapter(
            BeaconSettings {
                $0.source = .capture(path: path)
                $0.replaySpeed = 0
            },
            sink: RecordingSink(hasRoom: { false })
        )
        adapter.stop()
        #expect(adapter.isFinished)
        #expect(adapter.sink.sightings.isEmpty)
    }
}

/// Room in a queue that a test makes.
private final class Room: Sendable {
    private let state: Mutex<(left: Int, inVain: Int)>

    init(_ count: Int) { state = Mutex((count, 0)) }

    var isLeft: Bool {
        state.withLock { state in
            if state.left <= 0 { state.inVain += 1 }
            return state.left > 0
        }
    }

    var askedInVain: Int { state.withLock { $0.inVain } }

    func use() { state.withLock { $0.left -= 1 } }

    func add(_ count: Int) { state.withLock { $0.left += count } }
}
