// Figures and batches of a queue, as several suites need them.
import Queue
import QueueSupport
import Records
import StatusBoard
import Testing

extension Queue {
    /// Returns a stream's figures, with all that was accepted so far.
    func figures(_ stream: Records.Stream) throws -> StreamStatistics {
        try #require(try flushed().statistics().first { $0.stream == stream })
    }

    /// Freezes the first pending records of a stream.
    func freeze(_ stream: Records.Stream, _ count: Int64) throws -> Batch {
        try perform { writer in
            let range = try #require(try writer.pending(stream))
            return try #require(try writer.freeze(range, through: range.first + count - 1))
        }
    }
}
