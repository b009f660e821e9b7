// The audio chunks of a day, from its record file.
import Host
package import ServerBase

/// An audio chunk; its file is in `ArchiveFile.audioFolder`.
package struct AudioChunk {
    /// Milliseconds since 1970.
    package var start: Int64
    package var end: Int64
    package var file: String
    /// dBFS; nil if not reported.
    package var level: Double?
    /// Samples per second; nil if not reported.
    package var rate: Double?

    /// Returns whether a name is that of an audio file: no path, and a known format.
    package static func isFile(_ name: String) -> Bool {
        let end = name.split(separator: ".", omittingEmptySubsequences: false).last.map(String.init)
        return name.utf8.count <= 160 && !name.hasPrefix(".") && type(end ?? "") != nil
            && name.utf8.allSatisfy { $0.isDigit || $0.isLetter || [45, 46, 95].contains($0) }
    }

    /// Returns a format's media type (RFC 5334, RFC 9639, and what browsers accept for the others).
    package static func type(_ format: String) -> String? {
        ["ogg": "audio/ogg", "flac": "audio/flac", "aac": "audio/aac", "wav": "audio/wav"][format]
    }
}

package struct AudioDay {
    /// Bytes of a file that are read; a day of one-second chunks has fewer.
    private static let maxBytes = 48 << 20
    /// Milliseconds; a longer pause between two chunks is shown.
    package static let shownPause: Int64 = 500

    /// In order of time.
    package private(set) var chunks: [AudioChunk] = []

    /// Reads one stream's file of a day; empty if it does not exist or has no audio.
    package init(_ path: String) throws {
        guard let file = try LineFile.open(path) else { return }
        try file.forEachLine(from: 0, to: file.size(), budget: Self.maxBytes) {
            if let chunk = $0.flatMap(Self.chunk) { chunks.append(chunk) }
        }
        chunks.sort { ($0.start, $0.file) < ($1.start, $1.file) }
    }

    /// Nil if the record has no audio file.
    package static func chunk(_ record: RecordLine) -> AudioChunk? {
        guard record.extent.count <= 4096, let file = record.text("audio_file"),
            AudioChunk.isFile(file),
            let written = record.text("timestamp_start") ?? record.text("timestamp"),
            let start = WallTime(rfc3339: written)?.milliseconds
        else { return nil }
        let end = record.text("timestamp_end").flatMap { WallTime(rfc3339: $0) }?.milliseconds
        let length = record.number("duration").map { Int64(min(max($0, 0), 86_400) * 1000) }
        // Limits a chunk to a day: lengths of centuries are wrong, and could overflow 64 bits in a
        // sum.
        let longest = start + Day.milliseconds
        return AudioChunk(
            start: start,
            end: min(longest, max(start, end ?? start + (length ?? 0))),
            file: file,
            level: record.number("average_db_level"),
            rate: record.number("sample_rate")
        )
    }

    /// Returns the chunks that begin in an hour of the day.
    package func chunks(in hour: Int, of day: Day) -> [AudioChunk] {
        let start = day.start(ofHour: hour)
        return chunks.filter { $0.start >= start && $0.start < start + 3_600_000 }
    }

    /// Returns the last chunk of the day that begins at or before `time`, else the first one.
    package func chunk(at time: Int64, of day: Day) -> AudioChunk? {
        let all = chunks.filter { $0.start >= day.start && $0.start < day.end }
        return all.last { $0.start <= time } ?? all.first
    }
}
