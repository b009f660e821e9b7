// Makes a FLAC file of samples, for an export.
import AudioFiles

/// Encodes 16-bit samples of one channel to the bytes of one FLAC file; not thread-safe.
package final class FlacSamples {
    /// The length of a block; only the last one may be shorter.
    private static let blockFrames = 4096

    private let encoder: BlockSegmentEncoder
    private let rate: Int
    private let frames: Int
    private var file = FlacFile()
    private var hasHeader = false

    /// `frames`: the number of samples that will be appended, for the header.
    package init(rate: Int, frames: Int) throws {
        (self.rate, self.frames) = (rate, frames)
        encoder = BlockSegmentEncoder(
            try FlacCodec(rate: rate, segmentFrames: Self.blockFrames),
            segmentFrames: Self.blockFrames
        )
    }

    /// Returns the bytes that are ready.
    package func append(_ new: [Int16]) throws -> [UInt8] {
        written(try encoder.encode(new[...]))
    }

    /// Returns the rest of the file.
    package func finish() throws -> [UInt8] {
        let bytes = written(try encoder.finish())
        return hasHeader ? bytes : FlacFile.header(rate: rate, frames: frames, first: [])
    }

    private func written(_ segments: [EncodedSegment]) -> [UInt8] {
        var bytes: [UInt8] = []
        for frame in segments.flatMap({ SegmentPackets.split($0.data) }) {
            if !hasHeader { bytes += FlacFile.header(rate: rate, frames: frames, first: frame) }
            hasHeader = true
            bytes += file.append(frame)
        }
        return bytes
    }
}
