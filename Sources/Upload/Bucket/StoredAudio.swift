// Remembers how much of a batch's audio a bucket has, so that a restart continues there.
import Queue

/// The current batch and the last chunk of its audio that is stored; a memo of the queue.
///
/// A long batch on a slow link takes hours: with a power cut each night it would never finish.
final class StoredAudio {
    private static let memo = "stored_sound"

    private let bucket: String
    /// nil if no queue is uploaded.
    private let queue: Queue?

    /// `bucket` is its URL; progress in another bucket does not count.
    init(_ bucket: String, _ queue: Queue?) {
        (self.bucket, self.queue) = (bucket, queue)
    }

    /// Returns the last stored chunk of a batch; nil if there is none.
    func through(_ batch: Batch) -> Int64? {
        // A resent batch is for a bucket that lost it.
        guard batch.state != .uploaded else { return nil }
        let words = queue?.remembered(Self.memo)?.split(separator: " ") ?? []
        guard words.count == 3, words[0] == batch.key, words[2] == bucket else { return nil }
        // A damaged memo may say any number.
        return Int64(words[1]).flatMap { (batch.first...batch.last).contains($0) ? $0 : nil }
    }

    func record(_ batch: Batch, through chunk: Int64) {
        queue?.remember(Self.memo, "\(batch.key) \(chunk) \(bucket)")
    }
}
