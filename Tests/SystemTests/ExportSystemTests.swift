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
