// Audio files of an export: their names and metadata, and the samples as they were recorded.
import AudioTags
import Foundation
import Host
import Queue
import QueueSupport
import Records
import Schedule
import SQLite
import Support
import Testing

@testable import Field
import Setup

@Suite struct AudioExportTests {
    @Test func soundThatIsDamaged_isCounted_andThatBehindItComes() throws {
        let fixture = try ExportFixture()
        try fixture.record(chunks: 3)
        do {
            let path = Configuration.databasePath(in: fixture.folder)
            let other = try Connection(path: path, access: .readWrite)
            try other.execute("UPDATE segments SET sum=sum+1 WHERE id=5")
        }
        let (text, outcome) = try fixture.export("audio", .ndjson)
        #expect(outcome == ExportOutcome(records: 2, unreadable: 1))
        #expect(try objects(text).map { $0["duration"] as? Double } == [3, 3])
        var request = ExportRequest(stream: "audio", format: .wav)
        request.output = fixture.folder + "/sound"
        let sound = try Export(request, fixture.configuration).run()
        #expect(sound == ExportOutcome(records: 2, unreadable: 1))
        let files = try FileManager.default.contentsOfDirectory(atPath: fixture.folder + "/sound")
        #expect(files.count == 2)
    }

    @Test func chunkRejectedByLibopus_isSkipped_andOthersExported() throws {
        let fixture = try ExportFixture()
        // 20 ms of silence; and the beginning of a packet whose number of frames is missing.
        let silence: [UInt8] = [0xF8, 0xFF, 0xFE]
        try fixture.record(opus: [silence, [0x03], silence])
        let folder = fixture.folder + "/sound"
        let cases: [(format: ExportFormat, kept: Int)] = [(.wav, 2), (.flac, 2), (.recorded, 3)]
        for (format, kept) in cases {
            var request = ExportRequest(stream: "audio", format: format)
            request.output = "\(folder)-\(format)"
            var messages: [String] = []
            let export = try Export(
                request,
                fixture.configuration,
                complain: { messages.append($0) }
            )
            #expect(try export.run() == ExportOutcome(records: kept, unreadable: 3 - kept))
            #expect(messages.count == 3 - kept)
            #expect(messages.allSatisfy { $0.contains("opus_decode") }, "\(messages)")
            let names = try FileManager.default.contentsOfDirectory(atPath: "\(folder)-\(format)")
            #expect(names.count == kept, "\(names)")
        }
    }

    /// People's voices may be in it.
    @Test func audio_isNotForOtherUsers() throws {
        let fixture = try ExportFixture()
        try fixture.record(chunks: 1)
        let folder = fixture.folder + "/sound"
        _ = try fixture.export("audio", .wav) { $0.output = folder }
        _ = try fixture.export("audio", .ndjson)
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
        for (path, mode) in [
            (folder, 0o750), ("\(folder)/\(name)", 0o640), (fixture.folder + "/out", 0o640),
        ] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let found = try #require(attributes[.posixPermissions] as? Int)
            #expect(found & ~mode == 0, "\(path): \(String(found, radix: 8))")
        }
    }

    @Test func soundIntoAFolder_isAsRecorded_orFlac() throws {
        let fixture = try ExportFixture()
        try fixture.record(chunks: 2)
        let names = { (format: ExportFormat?) throws -> [String] in
            let folder = "\(fixture.folder)/\(format?.rawValue ?? "plain")/"
            var request = ExportRequest(stream: "audio", format: format)
            request.output = folder
            let outcome = try Export(request, fixture.configuration).run()
            #expect(outcome == ExportOutcome(records: 2))
            return try FileManager.default.contentsOfDirectory(atPath: folder).map { folder + $0 }
        }
        #expect(try names(nil).allSatisfy { $0.hasSuffix(".wav") })
        for path in try names(.flac) {
            #expect(path.hasSuffix(".flac"))
            // Three seconds of samples of one value each, which is lossless.
            let wave = try Process.run(
                "/usr/bin/ffmpeg",
                ["-v", "error", "-i", path, "-f", "s16le", "-"]
            )
            #expect(wave.error.isEmpty)
            #expect(wave.data.count == 48_000)
            let first = try #require(wave.data.first)
            #expect(wave.data.prefix(16_000) == Data(repeating: first, count: 16_000))
        }
    }

    /// Batch tools go by the time of the file, other programs by names of Song Meter.
    @Test func songMeterNames_useSiteOffset_andFilesHaveAudioTime() throws {
        let fixture = try ExportFixture()
        fixture.configuration.deviceID = "lake-7"
        fixture.configuration.schedules.offset = 630
        fixture.configuration.site.name = "Lake meadow"
        fixture.configuration.site.fields = ["NABat|Grid Cell": "1234"]
        try fixture.record(chunks: 1, device: CaptureDevice(name: "mic", rate: 4000).stored)
        let starts = try objects(try fixture.export("audio", .ndjson).text).map {
            try #require(WallTime(rfc3339: $0["timestamp_start"] as? String ?? ""))
        }
        let start = try #require(starts.first)
        let folder = fixture.folder + "/sound"
        _ = try fixture.export("audio", .wav) { ($0.output, $0.names) = (folder, .songmeter) }
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
        let local = (start + .seconds(630 * 60)).rfc3339.filter { $0 != "-" && $0 != ":" }
        #expect(name == "Lake-meadow_\(local.prefix(8))_\(local.dropFirst(9).prefix(6)).wav")
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
        let modified = try #require(attributes[.modificationDate] as? Date)
        #expect(abs(modified.timeIntervalSince1970 * 1000 - Double(start.milliseconds)) < 2)
        let file = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
        let text = String(decoding: file, as: UTF8.self)
        #expect(text.contains("\nNABat|Grid Cell: 1234\n"))
        #expect(text.contains("\nWaypost|Site: Lake meadow\n"))
        #expect(text.contains("\nWaypost|Microphone: mic\nWaypost|Device Rate: 4000\n"))
    }

    @Test(arguments: [("sound", true), ("sound.ndjson", false), ("sound.json", false)])
    func output_thatIsNotThereYet_isAFolder(name: String, isFolder: Bool) throws {
        let fixture = try ExportFixture()
        try fixture.record(chunks: 1)
        var request = ExportRequest(stream: "audio", format: nil)
        request.output = "\(fixture.folder)/\(name)"
        _ = try Export(request, fixture.configuration).run()
        var isThere: ObjCBool = false
        #expect(FileManager.default.fileExists(atPath: request.output ?? "", isDirectory: &isThere))
        #expect(isThere.boolValue == isFolder)
    }

    @Test func soundFileWithoutAFix_hasTheConfiguredPlace() throws {
        let fixture = try ExportFixture()
        fixture.configuration.deviceID = "lake-7"
        fixture.configuration.schedules.fixed = SitePosition(latitude: -3.5, longitude: 29.25)
        try fixture.record(chunks: 1)
        _ = try fixture.export("audio", .wav) { $0.output = fixture.folder + "/sound" }
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder + "/sound")
        #expect(names.count == 1)
        #expect(names.allSatisfy { $0.hasSuffix("_-03.50000+029.25000.wav") }, "\(names)")
    }

    /// The first chunk's file says when and where it was recorded, and has the samples of the record.
    @Test func audioFile_hasItsPositionAndRecord_withSameSamples() throws {
        let fixture = try ExportFixture()
        fixture.configuration.deviceID = "lake-7"
        try fixture.walk(2)
        try fixture.record(chunks: 2)
        let records = try objects(fixture.export("audio", .ndjson).text)
        let root = fixture.folder + "/root"
        try FileManager.default.createDirectory(
            atPath: root + "/proc/device-tree",
            withIntermediateDirectories: true
        )
        try Data("Raspberry Pi 4\0".utf8).write(
            to: URL(fileURLWithPath: root + "/proc/device-tree/model")
        )
        _ = try fixture.export("audio", .wav) {
            $0.output = fixture.folder + "/sound"
            $0.localOffset = { _ in -12_600 }
            ($0.version, $0.root) = ("9.9", root)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder + "/sound")
        #expect(
            names.sorted() == [
                "lake-7_20261121T010020.000000-0330_+48.00100+011.00000.wav",
                "lake-7_20261121T010023.000000-0330_+48.00100+011.00000.wav",
            ]
        )
        for (name, record) in zip(names.sorted(), records) {
            let path = "\(fixture.folder)/sound/\(name)"
            let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            let stored = try #require(Data(base64Encoded: record["audio_data"] as? String ?? ""))
            // The size in the header counts the metadata; all else is the same.
            #expect(file[8..<stored.count].elementsEqual(stored[8...]))
            let text = String(decoding: file[stored.count...], as: UTF8.self)
            for line in [
                "GUANO|Version: 1.0", "Loc Position: 48.0010000 11.0000000", "Serial: lake-7",
                "Model: Raspberry Pi 4", "Firmware Version: waypost 9.9", "Length: 3.0",
                "Samplerate: 8000", "Waypost|Record ID: \(record["id"] as? String ?? "-")",
                "Waypost|Clock: \(record["clock"] as? String ?? "-")", "Waypost|Microphone: mic",
            ] {
                #expect(text.contains(line + "\n"), "\(line) in \(text)")
            }
        }
    }

    /// Root exports again into a folder of another user, who has put a link in a file's place.
    @Test func linkInPlaceOfASoundFile_isReplaced() throws {
        let fixture = try ExportFixture()
        try fixture.record(chunks: 1)
        let (target, folder) = (fixture.folder + "/target", fixture.folder + "/sound")
        try Data("mine".utf8).write(to: URL(fileURLWithPath: target))
        _ = try fixture.export("audio", .wav) { $0.output = folder }
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
        let path = "\(folder)/\(name)"
        #expect(unlink(path) == 0 && symlink(target, path) == 0)
        _ = try fixture.export("audio", .wav) { $0.output = folder }
        #expect(try String(contentsOfFile: target, encoding: .utf8) == "mine")
        #expect(
            try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
                == .typeRegular
        )
    }
}
