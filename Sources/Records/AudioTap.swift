// Passes recorded audio from the audio source to programs that listen, beside the queue.
package import Host
import Synchronization

/// Samples of one stored segment, and their place in the recording.
package struct AudioBlock: Sendable, Equatable {
    /// The run, an unbroken recording, and the number of the first sample in it.
    package var run: Int64
    package var frame: Int64
    /// Samples per second.
    package var rate: Int
    /// The first sample of the newest stored chunk that has these samples, and its capture time.
    ///
    /// They date each sample as the stored chunk does: `start` and the samples since, at `rate`.
    package var chunkFrame: Int64
    package var chunkStart: Stamp
    package var samples: [Int16]

    package init(
        run: Int64,
        frame: Int64,
        rate: Int,
        chunkFrame: Int64,
        chunkStart: Stamp,
        samples: [Int16]
    ) {
        (self.run, self.frame, self.rate) = (run, frame, rate)
        (self.chunkFrame, self.chunkStart, self.samples) = (chunkFrame, chunkStart, samples)
    }

    /// The time from `chunkStart` to the first sample.
    package var offset: Duration {
        let (seconds, rest) = (frame - chunkFrame).quotientAndRemainder(dividingBy: Int64(rate))
        return .seconds(seconds) + .nanoseconds(rest * 1_000_000_000 / Int64(rate))
    }
}

/// A bounded buffer from the audio source's thread to one reading thread with several readers.
///
/// The source never waits for a reader: if the buffer is full, the oldest block is dropped. Samples
/// are numbered, and a reader whose next sample was dropped learns how many it lost. While it is
/// closed, the source reads one flag per segment, and the buffer holds no memory.
package final class AudioTap: Sendable {
    /// The most blocks in the buffer (a block is a segment, about a second), and their bytes.
    package static let limit = 8
    package static let byteLimit = 8 << 20

    private struct Buffer {
        var isOpen = false
        var blocks: [(number: UInt64, block: AudioBlock)] = []
        /// The number of the next sample to come.
        var end: UInt64 = 0

        var first: UInt64 { blocks.first?.number ?? end }
        var bytes: Int { blocks.reduce(0) { $0 + $1.block.samples.count * 2 } }

        mutating func append(_ block: AudioBlock) {
            blocks.append((end, block))
            end += UInt64(block.samples.count)
            while blocks.count > AudioTap.limit || (bytes > AudioTap.byteLimit && blocks.count > 1)
            {
                blocks.removeFirst()
            }
        }
    }

    private let flag = Atomic(false)
    private let buffer = Mutex(Buffer())
    private let wakeup: Wakeup
    /// The last good fix, where the audio is recorded.
    package let place = StateBox<Fix?>(nil)

    package init() throws { wakeup = try Wakeup() }

    /// Readable when a block has come.
    package var descriptor: Int32 { wakeup.descriptor }

    /// Whether anybody listens.
    package var isOpen: Bool { flag.load(ordering: .relaxed) }

    // MARK: The source's thread

    /// Adds a block.
    package func pass(_ block: AudioBlock) {
        let isOpen = buffer.withLock { buffer in
            if buffer.isOpen { buffer.append(block) }
            return buffer.isOpen
        }
        if isOpen { wakeup.signal() }
    }

    // MARK: The reading thread

    /// Opens or closes it.
    package func set(open: Bool) {
        buffer.withLock { buffer in
            buffer.isOpen = open
            if !open { buffer.blocks = [] }
        }
        flag.store(open, ordering: .relaxed)
    }

    /// The number of the next sample to come.
    package var end: UInt64 { buffer.withLock { $0.end } }

    /// Advances `next` beyond samples that were dropped; returns how many.
    package func skipLost(_ next: inout UInt64) -> Int {
        let first = buffer.withLock { $0.first }
        guard next < first else { return 0 }
        defer { next = first }
        return Int(first - next)
    }

    /// Returns at most `limit` samples of one block from the number `next` on, which it advances.
    package func read(_ next: inout UInt64, atMost limit: Int) -> AudioBlock? {
        let number = next
        let found = buffer.withLock { buffer in
            buffer.blocks.last { $0.number <= number && number < buffer.end }
        }
        guard let found else { return nil }
        let from = Int(number - found.number)
        var block = found.block
        let to = min(block.samples.count, from + limit)
        mustHold(from <= to, "samples are read from the block that has them")
        block.frame += Int64(from)
        block.samples = Array(block.samples[from..<to])
        next += UInt64(to - from)
        return block
    }

    /// Forgets the blocks whose samples are all before a number: all readers have them.
    package func forget(before number: UInt64) {
        buffer.withLock { buffer in
            while let first = buffer.blocks.first,
                first.number + UInt64(first.block.samples.count) <= number
            {
                buffer.blocks.removeFirst()
            }
        }
    }

    package func clear() { wakeup.clear() }
}
