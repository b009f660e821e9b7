// `waypost export` beside a running gateway, read by other programs.
import Foundation
import Support
import Testing

@Suite struct ExportSystemTests {
    private func run(_ program: String, _ arguments: String...) throws -> Data {
        try run(program, arguments: arguments)
    }

    private func run(_ program: String, arguments: [String]) throws -> Data {
        let outcome = try Process.run(program, arguments)
        #expect(outcome.status == 0, "\(program) \(arguments): \(outcome.error)")
        return outcome.data
    }

    private func lines(_ site: Site, _ stream: String) throws -> [[String: Any]] {
        let (status, text) = try site.run("export", stream)
        #expect(status == 0)
        return try text.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }

    @Test func tracksAndSound_areReadByOtherPrograms() throws {
        let site = try Site()
        try site.configure(audio: "chunk = \"4s\"\noverlap = \"1s\"")
        let arguments = ["run", "--config", site.folder + "/waypost.toml"]
        try site.start(Tree.program("waypost"), arguments, FileHandle.nullDevice)
        try waitUntil("the database") {
            try site.run("export", "location").status == 0
        }
        for stream in ["location", "audio"] {
            try waitUntil(stream) { try !lines(site, stream).isEmpty }
        }
        // Beside the running gateway: all earlier records are exported.
        let fixes = try lines(site, "location").count
        for format in ["gpx", "geojson"] {
            let file = site.folder + "/track." + format
            #expect(
                try site.run("export", "location", "--format", format, "--output", file).status == 0
            )
            let kind = format == "gpx" ? "-t" : "-w"
            let rows = try run(
                "/usr/bin/env",
                arguments: ["gpsbabel", kind, "-i", format, "-f", file, "-o", "unicsv", "-F", "-"]
            )
            #expect(rows.split(separator: 10).count > fixes)
        }
        let chunk = try #require(try lines(site, "audio").first)
        let duration = try #require(chunk["duration"] as? Double)
        for (format, rate) in [("wav", 16_000), ("ogg", 48_000), ("flac", 16_000)] {
            let folder = site.folder + "/" + format
            #expect(
                try site.run("export", "audio", "--format", format, "--output", folder).status == 0
            )
            let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            #expect(names.allSatisfy { $0.hasSuffix(".\(format)") })
            let file = folder + "/" + (try #require(names.first))
            let probe = try run(
                "/usr/bin/ffprobe",
                "-v",
                "error",
                "-of",
                "csv=p=0",
                "-show_entries",
                "stream=codec_name",
                file
            )
            let codec = String(decoding: probe, as: UTF8.self)
            let codecs = ["wav": "pcm_s16le", "ogg": "opus", "flac": "flac"]
            #expect(codec.hasPrefix(codecs[format] ?? "?"), "\(codec)")
            let sound = try run("/usr/bin/ffmpeg", "-v", "error", "-i", file, "-f", "s16le", "-")
            #expect(Double(sound.count / 2) == (duration * Double(rate)).rounded())
            #expect(abs(level(sound) + 9.03) < 0.1)
        }
    }

    private static let hasScience =
        (try? Process.run(Tree.python, ["-c", "import guano, soundfile, mutagen"]).status)
        == 0

    /// Real files of each format, read by the libraries that scientists use.
    @Test(.enabled(if: hasScience, "needs guano, soundfile, mutagen (PyPI)"))
    func audioFiles_containTimePositionAndDevice() throws {
        let site = try Site()
        try site.configure(audio: "chunk = \"4s\"\noverlap = \"1s\"")
        let arguments = ["run", "--config", site.folder + "/waypost.toml"]
        try site.start(Tree.program("waypost"), arguments, FileHandle.nullDevice)
        for stream in ["location", "audio"] {
            try waitUntil(stream) {
                try site.run("export", stream).status == 0 && !lines(site, stream).isEmpty
            }
        }
        // A running gateway may still correct the dates.
        let gateway = try #require(site.children.last)
        gateway.terminate()
        gateway.waitUntilExit()
        let records = try lines(site, "audio")
        for format in ["wav", "ogg", "flac"] {
            let folder = site.folder + "/" + format
            let export = ["export", "audio", "--format", format, "--output", folder]
            #expect(try site.run(export).status == 0)
            let name = try #require(
                FileManager.default.contentsOfDirectory(atPath: folder).min()
            )
            let peer = try run(
                Tree.python,
                arguments: [Tree.path("Tests/Peers/science.py"), "\(folder)/\(name)"]
            )
            let all = try JSONSerialization.jsonObject(with: peer) as? [String: [String: Any]]
            let facts = try #require(all?.values.first)
            let fields = try #require(facts["fields"] as? [String: String])
            let read = Dictionary(
                uniqueKeysWithValues: fields.map { ($0.key.lowercased(), $0.value) }
            )
            let record = try #require(
                records.first { $0["id"] as? String == read["waypost|record id"] }
            )
            let duration = try #require(record["duration"] as? Double)
            let rate = try #require(facts["rate"] as? Double)
            #expect(facts["frames"] as? Double == (duration * rate).rounded(), "\(format)")
            #expect(read["length"].flatMap(Double.init) == duration)
            #expect(read["waypost|clock"] == record["clock"] as? String)
            #expect(read["guano|version"] == "1.0")
            #expect(read["loc position"]?.split(separator: " ").count == 2)
            #expect(read["firmware version"]?.hasPrefix("waypost ") == true)
            let start = try #require(record["timestamp_start"] as? String)
            // guano writes microseconds.
            let times = ["+00:00", "000+00:00"].map { String(start.dropLast()) + $0 }
            #expect(times.contains(read["timestamp"] ?? ""))
            let digits = start.dropLast().filter { $0 != "-" && $0 != ":" }
            #expect(name.contains("_\(digits)000+0000_+"), "\(name)")
        }
    }

    /// The mean level in dBFS.
    private func level(_ sound: Data) -> Double {
        let bytes = [UInt8](sound)
        var sum = 0.0
        for at in stride(from: 0, to: bytes.count - 1, by: 2) {
            let sample = Int16(bitPattern: UInt16(bytes[at]) | UInt16(bytes[at + 1]) << 8)
            sum += Double(sample) * Double(sample)
        }
        return 10 * log10(sum / Double(max(1, bytes.count / 2)) / (32_768 * 32_768))
    }
}
