// Encodes samples without a device, for benchmarks.
import Records

/// Wraps the audio source's encoder for the benchmark.
package final class BenchmarkEncoder {
    private let encoder: any SegmentEncoder

    /// Throws the codec library's error about rate or bitrate.
    package init(_ settings: AudioSettings) throws {
        encoder = try settings.newEncoder()
    }

    /// Encodes samples; returns the bytes of the segments that they complete.
    package func receive(_ samples: [Int16]) throws -> Int {
        try encoder.encode(samples[...]).reduce(0) { $0 + $1.data.count }
    }

    package func finish() throws -> Int { try encoder.finish().reduce(0) { $0 + $1.data.count } }
}
