// Makes a FLAC file of samples, for an export.
import AudioFiles

/// Encodes 16-bit samples of one channel to the bytes of one FLAC file; not thread-safe.
package final class FlacSamples {
    /// The length of a block; only the last one may be shorter.
    private static let blockFrames = 4096

    private let codec: FlacCodec
    private let rate: Int
    private let frames: Int
    private var samples: [Int16] = []
    private var file = FlacFile()
    private var hasHeader = false

    /// `frames`: the number of samples that will be appended, for the header.
    package init(rate: Int, frames: Int) throws {
        (self.rate, self.frames) = (rate, frames)
        codec = try FlacCodec(rate: rate, segmentFrames: Self.blockFrames)
    }

    /// Returns the bytes that are ready.
    package func append(_ new: [Int16]) throws -> [UInt8] {
        samples += new
        var bytes: [UInt8] = []
        var start = 0
        while samples.count - start >= Self.blockFrames {
            let end = start + Self.blockFrames
            bytes += written(try codec.encode(samples[start..<end]))
            start = end
        }
        samples.removeFirst(start)
        return bytes
    }

    /// Returns the rest of the file.
    package func finish() throws -> [UInt8] {
        let bytes = written(try codec.finish(samples[...]))
        return hasHeader ? bytes : FlacFile.header(rate: rate, frames: frames, first: [])
    }

    private func written(_ packets: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for frame in packets.flatMap({ SegmentPackets.split($0) }) {
            if !hasHeader { bytes += FlacFile.header(rate: rate, frames: frames, first: frame) }
            hasHeader = true
            bytes += file.append(frame)
        }
        return bytes
    }
}
