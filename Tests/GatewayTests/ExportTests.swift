// Exports from a real database: existing records, in the requested time, in each format.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

import Daemon
@testable import Field
import Setup

@Suite struct ExportTests {
    private func bytesToRead(_ pipe: Int32) -> Int32 {
        var count: Int32 = 0
        _ = ioctl(pipe, UInt(FIONREAD), &count)
        return count
    }

    /// Readers reject a course of 360 or more.
    @Test(arguments: [(0.04, 0.0), (359.94, 359.9), (359.96, 0), (360, 0)])
    func course_isBelow360_roundedToo(course: Double, shown: Double) throws {
        let fixture = try ExportFixture()
        let stamp = fixture.clock.stamp()
        var fix = Fix(stamp: stamp, mode: .twoDimensional, latitude: 48, longitude: 11)
        fix.course = course
        fixture.queue.accept(fix)
        try fixture.queue.flushed()
        let records = try objects(fixture.export("location", .ndjson).text)
        #expect(records.map { $0["course"] as? Double } == [shown])
    }

    /// A reader that pauses: the export waits for it, and the gateway's WAL is still checkpointed.
    @Test func outputThatNobodyReads_doesNotKeepTheJournal() throws {
        let fixture = try ExportFixture()
        try fixture.walk(2000)
        mkfifo(fixture.folder + "/out.part", 0o600)
        let pipe = open(fixture.folder + "/out.part", O_RDWR)
        defer { close(pipe) }
        let outcome = Locked<Result<ExportOutcome, any Error>?>(nil)
        let (folder, configuration) = (fixture.folder, fixture.configuration)
        let thread = try OwnThread("export") {
            var request = ExportRequest(stream: "location", format: .ndjson)
            request.output = folder + "/out"
            let done = Result { try Export(request, configuration).run() }
            outcome.update { $0 = done }
        }
        #expect(eventually { bytesToRead(pipe) >= 60_000 })
        for _ in 0..<2000 { try fixture.walk(10) }
        #expect(FileSpace.size(Configuration.databasePath(in: folder) + "-wal") < 6 << 20)
        #expect(outcome.value == nil)
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while outcome.value == nil {
            if bytesToRead(pipe) > 0 { _ = read(pipe, &block, block.count) } else { usleep(1000) }
        }
        thread.join()
        #expect(try outcome.value?.get().records == 2000)
    }

    /// As root, a rename would replace `/dev/null` by a file.
    @Test func outputThatIsNoFile_isWritten_andStaysWhatItIs() throws {
        let fixture = try ExportFixture()
        try fixture.walk(3)
        let path = fixture.folder + "/pipe"
        mkfifo(path, 0o600)
        let pipe = open(path, O_RDWR | O_NONBLOCK)
        defer { close(pipe) }
        #expect(symlink(path, fixture.folder + "/link") == 0)
        for name in ["/pipe", "/link"] {
            _ = try fixture.export("location", .ndjson) { $0.output = fixture.folder + name }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let count = max(0, read(pipe, &bytes, bytes.count))
            let text = String(decoding: bytes.prefix(count), as: UTF8.self)
            #expect(try objects(text).count == 3)
        }
        #expect(throws: (any Error).self) {
            try fixture.export("location", .ndjson) { $0.output = fixture.folder }
        }
    }

    /// `status` shows pending records by that name.
    @Test func undeclaredStream_isFoundByItsWireName() throws {
        let fixture = try ExportFixture()
        let record = UserRecord(
            stream: "weather",
            stamp: fixture.clock.stamp(),
            members: Array(#""n":1"#.utf8)
        )
        fixture.queue.put([record]) { _ in }
        try fixture.queue.flushed()
        #expect(try fixture.export("site_weather", .ndjson).outcome.records == 1)
        #expect(throws: (any Error).self) { try fixture.export("weather_site", .ndjson) }
    }

    @Test func lines_areTheRecordsOfTheTimeThatIsWanted() throws {
        let fixture = try ExportFixture()
        try fixture.walk(10)
        let start = WallTime(milliseconds: 1_795_235_400_000)
        #expect(try fixture.export("location", .ndjson).outcome.records == 10)
        let (text, outcome) = try fixture.export("linux_gpsd_location", .ndjson) {
            $0.since = start + .seconds(20)
            $0.until = start + .seconds(50)
        }
        #expect(outcome == ExportOutcome(records: 3))
        #expect(
            try objects(text).compactMap { $0["latitude"] as? Double } == [48.002, 48.003, 48.004]
        )
        #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/out.part"))
    }

    @Test func whatIsGone_isLeftOut() throws {
        let fixture = try ExportFixture()
        try fixture.walk(3000)
        for (end, isDropped) in [(Int64(100), false), (1500, true)] {
            let range = try #require(fixture.queue.pending(.location))
            try fixture.queue.perform { writer in
                guard let batch = try writer.freeze(range, through: end), isDropped else { return }
                try writer.quarantine(batch, message: "no")
                _ = try writer.drop(batch)
            }
        }
        let (text, outcome) = try fixture.export("location", .ndjson)
        #expect(outcome == ExportOutcome(records: 1600))
        #expect(text.split(separator: "\n").count == 1600)
    }

    /// A page of the table itself, so its records are unknown.
    @Test func pageThatIsDamaged_isLeftOut_andWhatIsBehindItComes() throws {
        let fixture = try ExportFixture()
        try fixture.walk(3000)
        fixture.queue.close()
        let path = Configuration.databasePath(in: fixture.folder)
        let file = try #require(FileHandle(forUpdatingAtPath: path))
        let bytes = [UInt8](try #require(try file.readToEnd()))
        // Leaf pages of tables begin so (sqlite.org/fileformat2.html, section 1.6).
        let leaves = stride(from: 0, to: bytes.count, by: 1024).filter { bytes[$0] == 13 }
        try file.seek(toOffset: UInt64(leaves[leaves.count / 2]))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 1024))
        try file.close()
        let (text, outcome) = try fixture.export("location", .ndjson)
        #expect(outcome.records + outcome.unreadable == 3000)
        #expect((2900..<3000).contains(outcome.records))
        #expect(text.split(separator: "\n").count == outcome.records)
    }

    @Test func table_hasAColumnForEachNameOfAnyRecord() throws {
        let fixture = try ExportFixture()
        let done = StateBox(0)
        for members in [
            #""a":1.50,"b":"x, \"y\"\nz""#, #""c":{"d":[1,2],"e":{"f":7},"g":{}},"a":null"#,
            #""a":-1,"b":"=1+1""#,
        ] {
            fixture.queue.put([
                UserRecord(
                    stream: "weather",
                    stamp: fixture.clock.stamp(),
                    members: Array(members.utf8)
                )
            ]) { error in if error == nil { done.update { $0 += 1 } } }
        }
        try fixture.queue.flushed()
        #expect(done.value == 3)
        let text = try fixture.export("weather", .csv).text
        let lines = text.components(separatedBy: "\r\n")
        #expect(lines.first?.hasPrefix("id,timestamp,") == true)
        #expect(
            Set(lines[0].split(separator: ",")) == [
                "id", "timestamp", "a", "b", "c.d", "c.e.f", "c.g", "clock",
            ]
        )
        #expect(lines[1].contains("1.50,\"x, \"\"y\"\"\nz\""))
        #expect(lines[1].contains(",2026-11-21 04:30:00.000Z,"))
        #expect(lines[2].contains("\"[1,2]\",7,{}"))
        #expect(lines[3].contains(",-1,'=1+1,"))
        #expect(lines.count == 5)
    }

    /// Half an hour west, before and after the hour changes.
    @Test func localTimes_areThoseOfTheZone() throws {
        let fixture = try ExportFixture()
        try fixture.walk(1)
        for (offset, csv, json) in [
            (3600, "2026-11-21 05:30:00.000", "2026-11-21T05:30:00.000+01:00"),
            (-12_600, "2026-11-21 01:00:00.000", "2026-11-21T01:00:00.000-03:30"),
        ] {
            let isLocal = { (request: inout ExportRequest) in
                request.localOffset = { _ in offset }
            }
            let table = try fixture.export("location", .csv, isLocal).text
            #expect(table.contains(",\(csv),"), "\(table)")
            let record = try #require(
                objects(fixture.export("location", .ndjson, isLocal).text).first
            )
            #expect(record["timestamp"] as? String == json)
            #expect(record["latitude"] as? Double == 48)
            let points = try fixture.export("location", .geojson, isLocal).text
            #expect(points.contains("\"timestamp\":\"\(json)\""))
            // GPX is always in UTC.
            #expect(throws: Failure.self) { try fixture.export("location", .gpx, isLocal) }
        }
    }

    /// Root exports into a folder of another user, who has put a link there.
    @Test func linkInTheFolder_isNotFollowed() throws {
        let fixture = try ExportFixture()
        try fixture.walk(1)
        let target = fixture.folder + "/target"
        try Data("mine".utf8).write(to: URL(fileURLWithPath: target))
        #expect(symlink(target, fixture.folder + "/out.part") == 0)
        #expect(throws: Failure.self) { try fixture.export("location", .ndjson) }
        #expect(try String(contentsOfFile: target, encoding: .utf8) == "mine")
    }

    @Test func track_isInSegments_andPointsHaveTheirProperties() throws {
        let fixture = try ExportFixture()
        try fixture.walk(2)
        fixture.clock.advance(by: .seconds(3600))
        try fixture.walk(1)
        let track = try fixture.export("location", .gpx).text
        #expect(track.components(separatedBy: "<trkseg>").count == 3)
        #expect(track.components(separatedBy: "</trkseg>").count == 3)
        #expect(
            track.contains("<trkpt lat=\"48.0010000\" lon=\"11.0000000\"><ele>500.0</ele><time>")
        )
        let points = try fixture.export("location", .geojson).text
        let object = try JSONSerialization.jsonObject(with: Data(points.utf8)) as? [String: Any]
        let features = try #require(object?["features"] as? [[String: Any]])
        #expect(features.count == 3)
        let properties = try #require(features[0]["properties"] as? [String: Any])
        #expect(properties["speed"] as? Double == 1.25)
        let geometry = try #require(features[0]["geometry"] as? [String: Any])
        #expect(geometry["coordinates"] as? [Double] == [11, 48, 500])
    }

    @Test func emptyStream_isAWholeFile() throws {
        let fixture = try ExportFixture()
        #expect(try fixture.export("location", .ndjson).text.isEmpty)
        #expect(try fixture.export("location", .gpx).text.hasSuffix("</trk>\n</gpx>\n"))
        let points = try fixture.export("location", .geojson).text
        #expect(
            (try JSONSerialization.jsonObject(with: Data(points.utf8)) as? [String: Any]) != nil
        )
    }

    @Test func whatCannotBe_isSaid() throws {
        let fixture = try ExportFixture()
        for (stream, format, words) in [
            ("sea", ExportFormat.ndjson, "no stream"), ("beacons", .gpx, "is for location"),
            ("location", .ogg, "is for audio; export location as ndjson, csv, gpx, geojson"),
        ] {
            #expect {
                try fixture.export(stream, format)
            } throws: {
                "\($0)".contains(words)
            }
        }
    }
}
