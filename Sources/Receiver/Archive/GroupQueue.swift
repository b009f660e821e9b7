// Batches that wait for the disk, stored in groups.
import Foundation

/// What became of a batch.
package struct Receipt: Sendable, Equatable {
    package var accepted: Int
    package var duplicates: Int
}

/// A batch whose thread waits for it.
final class WaitingBatch {
    let batch: IncomingBatch
    let key: String
    /// Valid as long as the thread waits.
    let body: ByteView
    var result: Result<Receipt, any Error>?

    init(batch: IncomingBatch, key: String, body: ByteView) {
        self.batch = batch
        self.key = key
        self.body = body
    }
}

/// Whoever finds nobody at work does it for all that wait, one group after another (as a database groups commits).
final class GroupQueue {
    /// Batches that are stored together at most.
    private static let most = 32

    private let condition = NSCondition()
    private var waiting: [WaitingBatch] = []
    private var hasLeader = false

    /// Returns the result that `work` gave this batch, on this thread or on that of another batch.
    func perform(_ mine: WaitingBatch, _ work: ([WaitingBatch]) -> Void) throws -> Receipt {
        condition.lock()
        defer { condition.unlock() }
        waiting.append(mine)
        while true {
            if let result = mine.result { return try result.get() }
            guard !hasLeader else {
                condition.wait()
                continue
            }
            hasLeader = true
            let group = Array(waiting.prefix(Self.most))
            waiting.removeFirst(group.count)
            condition.unlock()
            work(group)
            condition.lock()
            hasLeader = false
            condition.broadcast()
        }
    }
}
