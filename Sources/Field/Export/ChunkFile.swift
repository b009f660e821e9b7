// Writes the audio file of a chunk, in another format than the recorded one if that is asked for.
import Audio
import AudioFiles
import Host
import Queue
import Records
import Upload

/// The audio file of one chunk.
struct ChunkFile {
    let stored: Stored<Chunk>
    let source: RecordSource
    let reader: Reader

    private var chunk: Chunk { stored.record }

    /// Writes the file into `folder`; returns false if it is in its recorded format instead.
    func write(as format: ExportFormat, into folder: String) throws -> Bool {
        let name = try source.fileName(of: stored)
        let recorded = chunk.codec.format
        let base = "\(folder)/\(name.dropLast(recorded.count))"
        switch (format, chunk.codec) {
        case (.wav, .opus): try writeWave(to: base + "wav")
        case (.flac, .opus), (.flac, .wav): try writeFlac(to: base + "flac")
        default:
            try copy(to: "\(folder)/\(name)")
            return format == .recorded || format.rawValue == recorded
        }
        return true
    }

    private func copy(to path: String) throws {
        let file = try ExportFile(path)
        try source.file(of: stored) { try file.write($0) }
        try file.close()
    }

    private func writeWave(to path: String) throws {
        let file = try ExportFile(path)
        try file.write(WaveFile.header(rate: chunk.rate, frames: chunk.frames))
        try OpusSamples.decode(stored, reader) { samples in
            try file.write(
                samples.flatMap {
                    [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
                }
            )
        }
        try file.close()
    }

    private func writeFlac(to path: String) throws {
        let file = try ExportFile(path)
        let encoder = try FlacSamples(rate: chunk.rate, frames: chunk.frames)
        let append = { (samples: [Int16]) in try file.write(encoder.append(samples)) }
        if chunk.codec == .opus {
            try OpusSamples.decode(stored, reader, append)
        } else {
            try eachSegment(append)
        }
        try file.write(encoder.finish())
        try file.close()
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
