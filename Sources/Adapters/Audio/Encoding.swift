// The way from samples to stored segments by itself, for measuring it.
import Records

/// One run's encoder, as the source uses it.
package final class Encoding {
    private let encoder: any SegmentEncoder

    /// Throws what the codec's library says of rate and bitrate.
    package init(_ settings: AudioSettings) throws {
        encoder = try settings.newEncoder()
    }

    /// Bytes of the segments that these samples complete.
    package func take(_ samples: [Int16]) throws -> Int {
        try encoder.encode(samples[...]).reduce(0) { $0 + $1.data.count }
    }

    package func finish() throws -> Int { try encoder.finish().reduce(0) { $0 + $1.data.count } }
}
