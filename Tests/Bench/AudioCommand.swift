// `waypost-bench audio`: what encoding costs, beside each codec's own tool.
import ArgumentParser
import Audio
import CBaseline
import Configuration
import Glibc
import Queue
import Records

struct AudioCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audio",
        abstract: "Encode sound with each codec, beside the codec's own tool on the same file.",
        discussion: """
            16 kHz, one channel, 24 kb/s for Opus and AAC, complexity 5 for Opus and level 5 for FLAC on both \
            sides. The tools are opusenc, flac, and for AAC a loop in C around the same library, which has no \
            tool in Debian. Figures are seconds of CPU for an hour of sound, medians of the rounds.
            """
    )

    @Option(help: "Minutes of sound.") var minutes = 10
    @Option(help: "Times that each side runs.") var rounds = 3
    @Flag(help: "One JSON object instead of the table.") var json = false

    private static let rate = 16_000

    mutating func validate() throws {
        guard (1...600).contains(minutes), (1...99).contains(rounds) else {
            throw ValidationError("--minutes from 1 to 600, --rounds from 1 to 99")
        }
    }

    mutating func run() throws {
        let path = "/tmp/waypost-bench-\(getpid()).raw"
        try Self.write(seconds: minutes * 60, to: path)
        defer { unlink(path) }
        if !json { Output.write("CODEC  WAYPOST  TOOL   RATIO  KB/S\n") }
        var rows: [Row] = []
        for codec in [AudioCodec.opus, .flac, .aac] {
            var pairs: [(own: Double, tool: Double)] = []
            var bytes = 0
            for round in 1...rounds {
                Output.progress("\(codec), round \(round) of \(rounds)")
                var own = 0.0
                (own, bytes) = try Self.encode(path, codec)
                pairs.append((own, try Self.tool(path, codec)))
            }
            let own = Self.median(pairs.map(\.own)) * 60 / Double(minutes)
            let tool = Self.median(pairs.map(\.tool)) * 60 / Double(minutes)
            rows.append(
                Row(
                    "an hour of sound as \(codec), CPU",
                    "s",
                    own,
                    beside: (Self.toolName(codec), tool),
                    goal: Row.Goal(limit: 1.05, isOfRatio: true)
                )
            )
            if json { continue }
            let columns = [
                Self.text(own, 7), Self.text(tool, 5), Self.text(own / tool, 6),
                Self.text(Double(bytes) / Double(minutes * 60) / 1000, 5),
            ]
            let name = "\(codec)" + String(repeating: " ", count: max(0, 5 - "\(codec)".count))
            Output.write("\(name)  \(columns.joined(separator: " "))\n")
        }
        if json { Output.write(Row.report("audio", rows)) }
    }

    private static func toolName(_ codec: AudioCodec) -> String {
        switch codec {
        case .opus: "opusenc"
        case .flac: "flac"
        case .aac, .wav: "C"
        }
    }

    /// CPU of the way that the daemon's sound takes, read in tenths of a second; and the bytes it stored.
    private static func encode(_ path: String, _ codec: AudioCodec) throws -> (Double, Int) {
        guard let file = fopen(path, "r") else { throw BenchFailure("\(path) cannot be read") }
        defer { fclose(file) }
        var settings = AudioSettings { $0.devices = [] }
        settings.codec = codec
        let before = Usage.now().cpu
        let encoding = try BenchmarkEncoder(settings)
        var block = [Int16](repeating: 0, count: rate / 10)
        var bytes = 0
        while fread(&block, 2, block.count, file) == block.count {
            bytes += try encoding.receive(block)
        }
        bytes += try encoding.finish()
        return (Usage.now().cpu - before, bytes)
    }

    private static func tool(_ path: String, _ codec: AudioCodec) throws -> Double {
        switch codec {
        case .opus:
            return try run(
                "opusenc --quiet --raw --raw-rate 16000 --raw-chan 1 --bitrate 24 --comp 5 \(path) - >/dev/null"
            )
        case .flac:
            return try run(
                "flac -s -5 -c --force-raw-format --endian=little --sign=signed --channels=1 --bps=16 "
                    + "--sample-rate=16000 \(path) >/dev/null"
            )
        case .aac, .wav:
            let before = Usage.now().cpu
            guard waypost_baseline_aac(path, Int32(rate), 24_000) > 0 else {
                throw BenchFailure("libvo-aacenc refused")
            }
            return Usage.now().cpu - before
        }
    }

    /// CPU of a shell command and what it starts.
    private static func run(_ command: String) throws -> Double {
        let before = childrenCPU()
        guard system(command) == 0 else { throw BenchFailure("failed: \(command)") }
        return childrenCPU() - before
    }

    private static func childrenCPU() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        return Double(seconds) + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    /// A voice-like tone that never repeats, with noise.
    private static func write(seconds: Int, to path: String) throws {
        guard let file = fopen(path, "w") else { throw BenchFailure("\(path) cannot be written") }
        defer { fclose(file) }
        var phase = 0.0
        var noise: UInt64 = 1
        for second in 0..<seconds {
            let block = (0..<rate).map { frame -> Int16 in
                let time = Double(second) + Double(frame) / Double(rate)
                phase += 2 * Double.pi * (180 + 60 * sin(time * 1.7)) / Double(rate)
                noise = noise &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let voice =
                    9000 * (0.55 + 0.4 * sin(time * 7.1)) * (sin(phase) + 0.5 * sin(2 * phase))
                return Int16(voice) + Int16(truncatingIfNeeded: Int64(bitPattern: noise) >> 55)
            }
            guard fwrite(block, 2, block.count, file) == block.count else {
                throw BenchFailure("\(path): no room")
            }
        }
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    private static func text(_ value: Double, _ width: Int) -> String {
        let hundredths = Int((value * 100).rounded())
        let text = "\(hundredths / 100).\(hundredths % 100 / 10)\(hundredths % 10)"
        return String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
