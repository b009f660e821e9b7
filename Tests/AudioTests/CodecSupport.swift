// Sound through an encoder and the queue to the files that are uploaded, and what players make of those.
import Configuration
import Foundation
import Host
import Queue
import QueueSupport
import Records
import Support
import Testing
import Upload

@testable import Audio

/// A chunk as it is uploaded.
struct ChunkFile {
    var chunk: Chunk
    var bytes: [UInt8]
    /// Where its sound begins in the source.
    var first = 0
}

/// An encoder's way through a real queue, in a folder that is gone with it.
final class AudioRig {
    let settings: AudioSettings
    private let temporary = TemporaryFolder()
    private var folder: String { temporary.path }
    private let start = Stamp(
        boot: BootInstant(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_235_407_000)
    )

    init(_ codec: AudioCodec, rate: Int = 16_000, chunk: Duration = .seconds(30)) throws {
        var settings = AudioSettings { $0.devices = ["test"] }
        settings.codec = codec
        settings.rate = rate
        settings.chunk = chunk
        self.settings = settings
    }

    func queue() throws -> Queue {
        try Queue(at: folder + "/queue.sqlite", commitInterval: .seconds(1), clock: SystemClock())
    }

    /// Records a run; a cut one is left as a crash leaves it: without its end.
    func record(_ sound: [Int16], into queue: Queue, isCut: Bool = false) throws {
        let run = queue.newRunID()
        let encoder = try settings.newEncoder()
        queue.begin(settings.run(run, preskip: encoder.preskip))
        var frames = 0
        func accept(_ segments: [EncodedSegment]) throws {
            for segment in segments {
                let moment = Duration.milliseconds(frames * 1000 / settings.rate)
                queue.accept(segment.dated(run: run, start.advanced(by: moment)))
                frames += segment.frames
            }
            // Waits for the writer, because this source is faster than any microphone.
            try queue.perform { _ in }
        }
        for from in stride(from: 0, to: sound.count, by: 1600) {
            try accept(encoder.encode(sound[from..<min(sound.count, from + 1600)]))
        }
        guard !isCut else { return }
        try accept(encoder.finish())
        queue.end(run: run)
    }

    /// Every chunk of the queue as the file that would be uploaded.
    func files(_ queue: Queue) throws -> [ChunkFile] {
        _ = try queue.flushed().pending(.audio)
        let reader = try queue.reader()
        let source = try RecordSource(reader: reader, clockMap: 0)
        var stored: [Stored<Chunk>] = []
        try reader.chunks(1...queue.newest(.audio)) { stored.append($0) }
        var end = 0
        return try stored.map { chunk in
            var bytes: [UInt8] = []
            try source.file(of: chunk) { bytes += $0 }
            let first = end - chunk.record.overlapFrames
            end = first + chunk.record.frames
            return ChunkFile(chunk: chunk.record, bytes: bytes, first: first)
        }
    }

    /// The chunks of one whole run.
    func chunks(of sound: [Int16]) throws -> [ChunkFile] {
        let queue = try queue()
        defer { queue.close() }
        try record(sound, into: queue)
        return try files(queue)
    }
}

extension AudioSettings {
    func run(_ id: Int64, preskip: Int) -> AudioRun {
        AudioRun(
            id: id,
            codec: codec,
            rate: rate,
            device: "test",
            preskip: preskip,
            chunkSegments: chunkSegments,
            overlapSegments: overlapSegments
        )
    }
}

extension EncodedSegment {
    func dated(run: Int64, _ start: Stamp) -> Segment {
        Segment(run: run, frames: frames, start: start, meanSquare: meanSquare, data: data)
    }
}

/// Programs that play or check a file.
enum Player {
    /// Returns what ffmpeg decodes, at the file's rate unless one is given.
    static func ffmpeg(_ file: ChunkFile, rate: Int? = nil) throws -> [Int16] {
        let resampling = rate.map { ["-ar", "\($0)"] } ?? []
        let data = try run(
            "ffmpeg",
            ["-v", "error", "-i", "FILE"] + resampling + ["-f", "s16le", "-"],
            file
        )
        return data.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }
    }

    /// Runs a program on the file, `FILE` being its path; other words on standard error are a failure.
    @discardableResult
    static func run(
        _ program: String,
        _ arguments: [String],
        _ file: ChunkFile,
        expecting expected: String = ""
    ) throws -> Data {
        let path =
            NSTemporaryDirectory() + "waypost-\(UUID().uuidString).\(file.chunk.codec.format)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(file.bytes).write(to: URL(fileURLWithPath: path))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments.map { $0 == "FILE" ? path : $0 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        let words = String(
            decoding: errors.fileHandleForReading.readDataToEndOfFile(),
            as: UTF8.self
        )
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(program): \(words)")
        #expect(
            words.isEmpty || !expected.isEmpty && words.contains(expected),
            "\(program): \(words)"
        )
        return data
    }
}

/// How alike two stretches of sound are.
enum Likeness {
    /// The power of `left` over that of its difference to `right`, in dB; infinite for the same samples.
    static func decibels(_ left: ArraySlice<Int16>, _ right: ArraySlice<Int16>) -> Double {
        var (signal, noise) = (0.0, 0.0)
        for (a, b) in zip(left, right) {
            signal += Double(a) * Double(a)
            noise += (Double(a) - Double(b)) * (Double(a) - Double(b))
        }
        return 10 * log10(signal / noise)
    }

    /// The shift of `right` at which it is most like `left`, over two seconds from `start`.
    static func offset(_ left: [Int16], _ right: [Int16], from start: Int, within limit: Int)
        -> Int?
    {
        let span = min(32_000, left.count - start - limit, right.count - start - limit)
        guard span > 0 else { return nil }
        return (-limit...limit).max { first, second in
            func likeness(_ shift: Int) -> Double {
                decibels(
                    left[start..<(start + span)],
                    right[(start + shift)..<(start + shift + span)]
                )
            }
            return likeness(first) < likeness(second)
        }
    }
}
