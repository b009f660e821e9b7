// The chunks of sound of a day, from its file of records.
import Host

/// A chunk; its file lies beside the records.
struct SoundChunk {
    /// Milliseconds since 1970.
    var start: Int64
    var end: Int64
    var file: String
    /// dBFS; nil where it was not told.
    var level: Double?

    /// What the name of its spectrogram ends in, after the file's.
    static let picture = ".png"

    /// What a sound file is called: no path, and a format that is known.
    static func isFile(_ name: String) -> Bool {
        let end = name.split(separator: ".", omittingEmptySubsequences: false).last.map(String.init)
        return name.utf8.count <= 160 && !name.hasPrefix(".") && type(end ?? "") != nil
            && name.utf8.allSatisfy { $0.isDigit || $0.isLetter || [45, 46, 95].contains($0) }
    }

    /// The type of a format (RFC 5334, RFC 9639, and what browsers take for the others).
    static func type(_ format: String) -> String? {
        ["ogg": "audio/ogg", "flac": "audio/flac", "aac": "audio/aac", "wav": "audio/wav"][format]
    }
}

struct SoundDay {
    /// Of a file so many bytes are read: a day of chunks of a second has fewer.
    private static let mostBytes = 48 << 20
    /// A pause between two chunks that is longer is shown, in milliseconds.
    static let shownPause: Int64 = 500

    /// In the order of time.
    private(set) var chunks: [SoundChunk] = []

    /// Reads one stream's file of a day; empty where it is not there or has no sound.
    init(_ path: String) throws {
        guard let file = try LineFile.open(path) else { return }
        _ = try file.forEachLine(from: 0, to: file.size(), budget: Self.mostBytes) { line in
            if let chunk = line.flatMap(Self.chunk) { chunks.append(chunk) }
        }
        chunks.sort { ($0.start, $0.file) < ($1.start, $1.file) }
    }

    private static func chunk(_ line: ByteView) -> SoundChunk? {
        guard line.count <= 4096 else { return nil }
        let record = FlatRecord(String(decoding: line[0..<line.count], as: UTF8.self))
        guard let file = record.text("audio_file"), SoundChunk.isFile(file),
            let written = record.text("timestamp_start") ?? record.text("timestamp"),
            let start = WallTime(rfc3339: written)?.milliseconds
        else { return nil }
        let end = record.text("timestamp_end").flatMap { WallTime(rfc3339: $0) }?.milliseconds
        let length = record.number("duration").map { Int64(min(max($0, 0), 86_400) * 1000) }
        // A chunk of centuries is not one, and the lengths of many would add up to more than 64 bits.
        let longest = start + Day.milliseconds
        return SoundChunk(
            start: start,
            end: min(longest, max(start, end ?? start + (length ?? 0))),
            file: file,
            level: record.number("average_db_level")
        )
    }

    /// Those that begin in an hour of the day.
    func chunks(in hour: Int, of day: Day) -> [SoundChunk] {
        let start = day.start + Int64(hour) * 3_600_000
        return chunks.filter { $0.start >= start && $0.start < start + 3_600_000 }
    }

    /// The loudest level of each five minutes of the day that have a chunk with one.
    func levels(on day: Day) -> [Int64: Double] {
        var levels: [Int64: Double] = [:]
        for chunk in chunks where chunk.start >= day.start && chunk.start < day.end {
            guard let level = chunk.level else { continue }
            let slot = (chunk.start - day.start) / 300_000
            levels[slot] = max(levels[slot] ?? level, level)
        }
        return levels
    }
}
