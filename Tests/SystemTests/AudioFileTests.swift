// Sound from a microphone to playable files on the server, through the real programs.
import Foundation
import Support
import Testing

@Suite struct AudioFileTests {
    @Test(arguments: [
        ("opus", "ogg", 48_000), ("flac", "flac", 16_000), ("aac", "aac", 16_000),
        ("wav", "wav", 16_000),
    ])
    func codec_arrivesAsAFileThatPlaysForItsDuration(
        codec: String,
        suffix: String,
        rate: Int
    ) throws {
        let site = try Site()
        try site.configure(
            more: "interval = \"1s\"",
            audio: "codec = \"\(codec)\"\nchunk = \"4s\"\noverlap = \"1s\""
        )
        try site.start(
            Tree.program("waypost"),
            ["run", "--config", site.folder + "/waypost.toml"],
            FileHandle.nullDevice
        )
        var records: [[String: Any]] = []
        try waitUntil("a record") {
            records = try self.records(site.folder + "/data")
            return !records.isEmpty
        }
        let record = try #require(records.first)
        #expect(record["audio_format"] as? String == suffix)
        #expect(record["capture_device"] != nil)
        #expect(record["device"] == nil)
        let path = try #require(record["path"] as? String)
        #expect(path.hasSuffix("." + suffix))
        let duration = try #require(record["duration"] as? Double)
        let player = Process()
        player.executableURL = URL(fileURLWithPath: "/usr/bin/ffmpeg")
        player.arguments = ["-v", "error", "-i", path, "-f", "s16le", "-"]
        let output = Pipe()
        player.standardOutput = output
        try player.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile().count
        player.waitUntilExit()
        #expect(player.terminationStatus == 0)
        #expect(Double(bytes / 2) == (duration * Double(rate)).rounded())
        #expect(codec == "aac" ? abs(duration - 4) <= 0.064 : duration == 4)
        // A sine at half of full scale.
        #expect(abs((record["average_db_level"] as? Double ?? 0) + 9.03) < 0.05)
    }

    /// The records of whole chunks, each with the `path` of its file.
    private func records(_ folder: String) throws -> [[String: Any]] {
        var records: [[String: Any]] = []
        for case let name as String in FileManager.default.enumerator(atPath: folder) ?? .init()
        where name.hasPrefix("stream=linux_alsa_audio") && name.hasSuffix(".ndjson") {
            let lines = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
            for line in lines.split(separator: 10) {
                guard var record = try? JSONSerialization.jsonObject(with: line) as? [String: Any],
                    let file = record["audio_file"] as? String
                else { continue }
                let parts = name.split(separator: "/").dropLast().map { $0.drop { $0 != "=" } }
                let place = parts.map { $0.dropFirst() }.joined(separator: "/")
                record["path"] = "\(folder)/audio/\(place)/\(file)"
                records.append(record)
            }
        }
        return records
    }
}
