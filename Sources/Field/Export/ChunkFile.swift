// Writes the audio file of a chunk, in another format than the recorded one if that is asked for.
import Audio
import AudioFiles
import AudioTags
import Host
import Queue
import Records
import Upload

/// The audio file of one chunk.
struct ChunkFile {
    let stored: Stored<Chunk>
    let source: RecordSource
    let reader: Reader
    let recording: Recording

    private var chunk: Chunk { stored.record }

    /// Returns the format in which `write` writes: the recorded one if it cannot be converted.
    func type(as format: ExportFormat) -> String {
        switch (format, chunk.codec) {
        case (.wav, .opus): "wav"
        case (.flac, .opus), (.flac, .wav): "flac"
        default: chunk.codec.format
        }
    }

    /// Writes the file as a `type` of `type(as:)`.
    ///
    /// Throws a `CodecError` if the audio cannot be converted.
    func write(_ type: String, to path: String) throws {
        let start = recording.start
        let whole = try ExportFile(path, isNamedByUs: true, holdsAudio: true, modified: start)
        let file = TaggedExportFile(whole, type, recording.guano)
        switch (type, chunk.codec) {
        case ("wav", .opus): try writeWave(to: file)
        case ("flac", .opus), ("flac", .wav): try writeFlac(to: file)
        default: try source.file(of: stored) { try file.write($0) }
        }
        try file.close()
    }

    private func writeWave(to file: TaggedExportFile) throws {
        try file.write(WaveFile.header(rate: chunk.rate, frames: chunk.frames))
        try OpusSamples.decode(stored, reader) { try file.write($0.littleEndianBytes) }
    }

    private func writeFlac(to file: TaggedExportFile) throws {
        let encoder = try FlacSamples(rate: chunk.rate, frames: chunk.frames)
        let append = { (samples: [Int16]) in try file.write(encoder.append(samples)) }
        if chunk.codec == .opus {
            try OpusSamples.decode(stored, reader, append)
        } else {
            try eachSegment(append)
        }
        try file.write(encoder.finish())
    }

    /// Calls `body` with the samples of each segment of a chunk of PCM.
    private func eachSegment(_ body: ([Int16]) throws -> Void) throws {
        var isHeader = true
        try source.file(of: stored) { bytes in
            // The first piece is the header alone.
            defer { isHeader = false }
            guard !isHeader else { return }
            try body(
                stride(from: 0, to: bytes.count - 1, by: 2).map {
                    Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
                }
            )
        }
    }
}

/// An audio file that gets its metadata while it is written.
private final class TaggedExportFile {
    private let file: ExportFile
    private let type: String
    private let fields: [(key: String, value: String)]
    private var isStarted = false
    private var last: [UInt8] = []

    init(_ file: ExportFile, _ type: String, _ fields: [(key: String, value: String)]) {
        (self.file, self.type, self.fields) = (file, type, fields)
    }

    /// Appends a piece; the first one that is not empty has all that comes before the audio.
    func write(_ bytes: [UInt8]) throws {
        guard !isStarted, !bytes.isEmpty else { return try file.write(bytes) }
        isStarted = true
        let (first, last) = TaggedFile.started(bytes, type: type, fields)
        self.last = last
        try file.write(first)
    }

    func close() throws {
        try file.write(last)
        try file.close()
    }
}
