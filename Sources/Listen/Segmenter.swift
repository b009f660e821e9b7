// Cuts the live recording into segments of one length.
package import Host

/// Unbroken samples for one call of a detector.
package struct AudioSegment: Sendable, Equatable {
    package var rate: Int
    /// When the first sample was captured: as stored chunks date it, and on CLOCK_BOOTTIME.
    package var start: AudioTime
    package var boot: BootInstant
    /// False: `start` is by a clock that was never synced.
    package var isSynced: Bool
    package var device: String
    package var place: [Double]
    package var samples: [Int16] = []

    package var duration: Duration {
        .nanoseconds(Int64(samples.count) * 1_000_000_000 / Int64(rate))
    }
}

/// Collects samples until a segment is whole; a pure value.
///
/// A segment never spans a gap: the samples before it that make no whole segment are counted and
/// given to nobody.
package struct Segmenter {
    private let length: Duration
    private var current: AudioSegment?

    package init(length: Duration) { self.length = length }

    /// Returns the segments that a piece completes, and how many samples before it were left over.
    package mutating func receive(_ piece: AudioPiece) -> (segments: [AudioSegment], left: Int) {
        var left = 0
        if piece.isAfterGap || current.map({ $0.rate != piece.header.rate }) ?? false {
            left = current?.samples.count ?? 0
            current = nil
        }
        let wanted = Self.frames(length, piece.header.rate)
        var segments: [AudioSegment] = []
        let held = current?.samples.count ?? 0
        var at = 0
        while at < piece.samples.count {
            // Moved out, so that the samples are appended in place.
            var segment = current.take() ?? Self.segment(piece, from: at)
            let end = min(piece.samples.count, at + wanted - segment.samples.count)
            segment.samples += piece.samples[at..<end]
            at = end
            let isWhole = segment.samples.count == wanted
            if isWhole { segments.append(segment) } else { current = segment }
        }
        let (used, waits) = (segments.count * wanted, current?.samples.count ?? 0)
        let all = held + piece.samples.count
        invariant(used + waits == all, "each sample is in one segment, or waits for more")
        return (segments, left)
    }

    private static func frames(_ length: Duration, _ rate: Int) -> Int {
        max(1, Int((length.nanoseconds * Int64(rate) + 500_000_000) / 1_000_000_000))
    }

    /// An empty segment that starts at a sample of a piece.
    private static func segment(_ piece: AudioPiece, from index: Int) -> AudioSegment {
        let header = piece.header
        let offset = Duration.nanoseconds(Int64(index) * 1_000_000_000 / Int64(header.rate))
        return AudioSegment(
            rate: header.rate,
            start: piece.start + offset,
            boot: BootInstant(nanoseconds: header.boottimeNs) + offset,
            isSynced: header.isSynced,
            device: header.device,
            place: [header.latitude, header.longitude].compactMap { $0 }
        )
    }
}
