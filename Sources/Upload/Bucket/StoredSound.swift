// How much of a batch's sound a bucket has: whoever is started anew goes on there.
import Queue

/// The batch that is under way, and up to which chunk its sound is stored; a memo of the queue.
///
/// A long batch on a slow line takes hours: where the power goes each night, it would never come to its end.
final class StoredSound {
    private static let memo = "stored_sound"

    private let bucket: String
    /// nil where nothing of a queue is sent.
    private let queue: Queue?

    /// `bucket`: its address; another one has nothing.
    init(_ bucket: String, _ queue: Queue?) {
        (self.bucket, self.queue) = (bucket, queue)
    }

    /// The last chunk of a batch that is stored; nil for none.
    func through(_ batch: Batch) -> Int64? {
        // One that is sent again is for a bucket that lost it.
        guard batch.state != .uploaded else { return nil }
        let words = queue?.remembered(Self.memo)?.split(separator: " ") ?? []
        guard words.count == 3, words[0] == batch.key, words[2] == bucket else { return nil }
        return Int64(words[1])
    }

    func note(_ batch: Batch, through chunk: Int64) {
        queue?.remember(Self.memo, "\(batch.key) \(chunk) \(bucket)")
    }
}
