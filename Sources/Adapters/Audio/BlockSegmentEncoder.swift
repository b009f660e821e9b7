// Segments of codecs that encode whole blocks, each of which stands for itself: FLAC, AAC.
import Records

/// A codec that makes one packet of each block of samples.
protocol BlockCodec: AnyObject {
    /// Frames in a block.
    var blockFrames: Int { get }
    /// Takes a block and returns the packets that are ready, as they are stored; it may lag some blocks.
    func encode(_ block: ArraySlice<Int16>) throws -> [[UInt8]]
    /// Takes the last, shorter block, which may be empty; returns all packets that are left.
    func finish(_ rest: ArraySlice<Int16>) throws -> [[UInt8]]
}

/// Cuts a codec's packets into segments at the block next to each multiple of the segment's length.
///
/// Where blocks do not fill a segment exactly, segments differ by one block, and no error adds up.
final class BlockSegmentEncoder: SegmentEncoder {
    let preskip = 0
    private let codec: any BlockCodec
    private let segmentFrames: Int
    private var samples: [Int16] = []
    /// What is in no segment yet: packets, and the sums of each block that went in.
    private var packets: [[UInt8]] = []
    private var blocks: [SampleSums] = []
    /// Segments, and blocks in them, that are finished.
    private var segments = 0
    private var blocksOut = 0

    /// `segmentFrames`: at least a block.
    init(_ codec: any BlockCodec, segmentFrames: Int) {
        self.codec = codec
        self.segmentFrames = max(segmentFrames, codec.blockFrames)
    }

    func encode(_ new: ArraySlice<Int16>) throws -> [EncodedSegment] {
        samples.append(contentsOf: new)
        var start = 0
        while samples.count - start >= codec.blockFrames {
            let block = samples[start..<(start + codec.blockFrames)]
            note(block)
            packets += try codec.encode(block)
            start = block.endIndex
        }
        samples.removeFirst(start)
        return wholeSegments()
    }

    func finish() throws -> [EncodedSegment] {
        if !samples.isEmpty { note(samples[...]) }
        guard !blocks.isEmpty else { return [] }
        packets += try codec.finish(samples[...])
        samples = []
        var ended = wholeSegments()
        if !blocks.isEmpty { ended.append(take(packets.count)) }
        return ended
    }

    private func note(_ block: ArraySlice<Int16>) {
        blocks.append(SampleSums(block))
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
