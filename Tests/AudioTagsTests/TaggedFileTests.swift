// Metadata in real files: read back by ffprobe, with every sample as it was.
import AudioFiles
import AudioTags
import Foundation
import Host
import Support
import Testing

@Suite struct TaggedFileTests {
    private static let formats = ["wav", "flac", "ogg"]
    private static let codecs = ["wav": "pcm_s16le", "flac": "flac", "ogg": "libopus"]

    private let temporary = TemporaryFolder()

    private func recording() throws -> Recording {
        let start = try #require(WallTime(rfc3339: "2026-11-21T04:30:00.123Z"))
        var recording = Recording(device: "lake-7", start: start)
        recording.place = Recording.Place(
            latitude: 46.46,
            longitude: -6.84,
            accuracy: 4.5,
            altitude: 372.1
        )
        recording.offsetMinutes = 60
        (recording.rate, recording.duration, recording.overlap) = (16_000, 3, 0.5)
        (recording.clock, recording.recordID, recording.microphone) = ("synced", "id-1", "hw:1,0")
        return recording
    }

    private func tool(_ name: String, _ arguments: [String]) throws -> Data {
        let outcome = try Process.run("/usr/bin/\(name)", arguments)
        #expect(outcome.status == 0, "\(name) \(arguments): \(outcome.error)")
        return outcome.data
    }

    /// Three seconds of noise, as ffmpeg encodes it.
    private func made(_ format: String) throws -> [UInt8] {
        let path = "\(temporary.path)/made.\(format)"
        let source = "anoisesrc=d=3:r=16000:a=0.5:seed=7"
        let codec = try #require(Self.codecs[format])
        // Without ffmpeg's own chunks and comments.
        let arguments = ["-y", "-v", "error", "-f", "lavfi", "-i", source, "-ac", "1"]
        _ = try tool("ffmpeg", arguments + ["-c:a", codec, "-bitexact", path])
        return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private func samples(_ file: [UInt8], _ format: String) throws -> Data {
        let path = "\(temporary.path)/read.\(format)"
        try Data(file).write(to: URL(fileURLWithPath: path))
        return try tool("ffmpeg", ["-v", "error", "-i", path, "-f", "s16le", "-"])
    }

    @Test(arguments: formats) func sound_staysAsItWas_byteForByte(format: String) throws {
        let file = try made(format)
        let tagged = try TaggedFile.tagged(file, type: format, recording().guano)
        #expect(tagged != file)
        let sound = try samples(file, format)
        #expect(sound.count >= 96_000)
        #expect(try samples(tagged, format) == sound)
        // The same in pieces: the beginning, then the rest of the file.
        let (first, last) = try TaggedFile.started(
            Array(file[..<16_384]),
            type: format,
            recording().guano
        )
        var expected = first
        expected += file[16_384...]
        expected += last
        #expect(expected == tagged)
    }

    @Test(arguments: ["flac", "ogg"]) func comments_areReadByFFprobe(format: String) throws {
        let fields = try recording().guano
        let tagged = try TaggedFile.tagged(made(format), type: format, fields)
        let path = "\(temporary.path)/tagged.\(format)"
        try Data(tagged).write(to: URL(fileURLWithPath: path))
        let entries = format == "ogg" ? "stream_tags" : "format_tags"
        let probe = try tool(
            "ffprobe",
            ["-v", "error", "-of", "json", "-show_entries", entries, path]
        )
        let all = try #require(JSONSerialization.jsonObject(with: probe) as? [String: Any])
        let holder = (all["streams"] as? [[String: Any]])?.first ?? all["format"] as? [String: Any]
        let tags = try #require(holder?["tags"] as? [String: String])
        // FFmpeg compares names without case.
        let read = Dictionary(
            tags.map { ($0.key.lowercased(), $0.value) },
            uniquingKeysWith: { first, _ in first }
        )
        for (key, value) in fields { #expect(read[key.lowercased()] == value, "\(key)") }
        #expect(read["loc position"] == "46.4600000 -6.8400000")
        #expect(read["timestamp"] == "2026-11-21T05:30:00.123+01:00")
    }

    @Test func wave_hasTheChunkGuan() throws {
        let fields = try recording().guano
        let file = WaveFile.header(rate: 16_000, frames: 2) + [1, 2, 3, 4]
        let tagged = TaggedFile.tagged(file, type: "wav", fields)
        #expect(tagged.prefix(4).elementsEqual("RIFF".utf8))
        #expect(Array(tagged[8..<48]) == Array(file[8..<48]))
        #expect(tagged[48..<52].elementsEqual("guan".utf8))
        let text = String(decoding: tagged[56...], as: UTF8.self)
        #expect(text.hasPrefix("GUANO|Version: 1.0\n"))
        #expect(text.contains("\nWaypost|Record ID: id-1\n"))
        #expect(tagged.count % 2 == 0)
        #expect(Int(tagged[4]) + Int(tagged[5]) << 8 == tagged.count - 8)
    }

    /// Programs that know no GUANO read a comment: `LIST` in WAV, `COMMENT` elsewhere.
    @Test(arguments: formats) func note_isAComment_andSaysTheMicrophonesRate(format: String) throws
    {
        var recording = try recording()
        (recording.deviceRate, recording.site) = (8000, "lake meadow")
        recording.siteFields = ["NABat|Grid Cell": "1234", "Model": "mine"]
        let fields = recording.guano
        #expect(fields.filter { $0.key == "Model" }.map(\.value) == ["mine"])
        #expect(fields.contains { $0 == ("NABat|Grid Cell", "1234") })
        #expect(fields.contains { $0 == ("Waypost|Device Rate", "8000") })
        #expect(fields.contains { $0 == ("Waypost|Site", "lake meadow") })
        let path = "\(temporary.path)/noted.\(format)"
        let file = try TaggedFile.tagged(made(format), type: format, fields)
        try Data(file).write(to: URL(fileURLWithPath: path))
        let entries = "format_tags=comment:stream_tags=comment"
        let shown = try tool("ffprobe", ["-v", "error", "-show_entries", entries, path])
        let comment =
            "Recorded at 2026-11-21T05:30:00.123+01:00 by Waypost lake-7 at lake meadow "
            + "(46.4600000 -6.8400000) with hw:1,0, device_rate 8000 Hz: nothing above 4000 Hz"
        // Vorbis compares names without case.
        #expect(String(decoding: shown, as: UTF8.self).contains("=\(comment)\n"))
    }

    /// Files of devices: cut, of another type, of unknown length, or with lengths that lie.
    @Test func whatIsNotAWholeFile_isReturnedUnchanged() throws {
        let fields = try recording().guano
        var endless = WaveFile.header(rate: 16_000, frames: 2) + [1, 2, 3, 4]
        endless.replaceSubrange(40..<44, with: [255, 255, 255, 255])
        let wave = WaveFile.header(rate: 16_000, frames: 2) + [1, 2, 3, 4]
        for file in [endless, wave + [0], Array(wave.dropLast()), [], Array("RIFF".utf8)] {
            #expect(TaggedFile.tagged(file, type: "wav", fields) == file)
        }
        for format in Self.formats {
            let file = try made(format)
            // Files that end in the middle of their headers.
            for count in 0..<40 {
                let cut = Array(file[..<count])
                #expect(TaggedFile.tagged(cut, type: format, fields) == cut)
            }
            #expect(TaggedFile.tagged(file, type: "aac", fields) == file)
            for other in Self.formats where other != format {
                #expect(TaggedFile.tagged(file, type: other, fields) == file)
            }
        }
    }

    /// A value with a line feed would begin a field of its own.
    @Test func value_staysInItsField() throws {
        var recording = try recording()
        recording.microphone = "a\nLoc Position: 0 0\r\u{0}"
        let fields = recording.guano
        #expect(fields.allSatisfy { !$0.value.contains("\n") && !$0.value.contains("\u{0}") })
        #expect(fields.filter { $0.key == "Loc Position" }.count == 1)
    }
}
