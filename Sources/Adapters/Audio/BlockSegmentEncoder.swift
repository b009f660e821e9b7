// Makes segments with codecs that encode independent blocks: FLAC, AAC.
import Records

/// A codec that encodes each block of samples into one packet.
protocol BlockCodec: AnyObject {
    /// Frames in a block.
    var blockFrames: Int { get }
    /// Encodes a block; returns the packets that are ready, in stored form.
    ///
    /// The codec may delay packets by some blocks.
    func encode(_ block: ArraySlice<Int16>) throws -> [[UInt8]]
    /// Encodes the last, shorter or empty block; returns all remaining packets.
    func finish(_ rest: ArraySlice<Int16>) throws -> [[UInt8]]
}

/// Groups packets into segments.
///
/// Segment n ends at the block boundary nearest to n * `segmentFrames`. Segment lengths then differ
/// by at most one block, and rounding errors do not accumulate.
final class BlockSegmentEncoder: SegmentEncoder {
    let preskip = 0
    private let codec: any BlockCodec
    private let segmentFrames: Int
    private var samples: [Int16] = []
    /// Packets not yet in a segment, and the sums of each encoded block.
    private var packets: [[UInt8]] = []
    private var blocks: [SampleSums] = []
    /// The number of finished segments, and of blocks in them.
    private var segments = 0
    private var blocksOut = 0

    /// Raises `segmentFrames` to one block if it is smaller.
    init(_ codec: any BlockCodec, segmentFrames: Int) {
        self.codec = codec
        self.segmentFrames = max(segmentFrames, codec.blockFrames)
    }

    func encode(_ new: ArraySlice<Int16>) throws -> [EncodedSegment] {
        samples.append(contentsOf: new)
        var start = 0
        while samples.count - start >= codec.blockFrames {
            let block = samples[start..<(start + codec.blockFrames)]
            blocks.append(SampleSums(block))
            packets += try codec.encode(block)
            start = block.endIndex
        }
        samples.removeFirst(start)
        return wholeSegments()
    }

    func finish() throws -> [EncodedSegment] {
        if !samples.isEmpty { blocks.append(SampleSums(samples)) }
        guard !blocks.isEmpty else { return [] }
        packets += try codec.finish(samples[...])
        samples = []
        var ended = wholeSegments()
        if !blocks.isEmpty { ended.append(take(packets.count)) }
        return ended
    }

    private func wholeSegments() -> [EncodedSegment] {
        var ended: [EncodedSegment] = []
        while true {
            let exact = (segments + 1) * segmentFrames
            let wanted = (2 * exact + codec.blockFrames) / (2 * codec.blockFrames) - blocksOut
            guard packets.count >= wanted else { return ended }
            ended.append(take(wanted))
        }
    }

    private func take(_ count: Int) -> EncodedSegment {
        let taken = blocks.prefix(count)
        let sums = taken.reduce(SampleSums(), +)
        defer {
            packets.removeFirst(min(count, packets.count))
            blocks.removeFirst(taken.count)
            blocksOut += count
            segments += 1
        }
        return EncodedSegment(
            frames: sums.count,
            meanSquare: sums.variance(),
            data: Array(packets.prefix(count).joined())
        )
    }
}
