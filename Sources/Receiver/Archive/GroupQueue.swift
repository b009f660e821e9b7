// Group commit: batches that wait for the disk are stored together.
import Foundation

/// The result of storing a batch.
package struct Receipt: Sendable, Equatable {
    package var accepted: Int
    package var duplicates: Int
}

/// A batch whose thread waits for the result.
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

/// Runs the work of all waiting batches in groups: the first thread that finds no leader becomes
/// the leader.
final class GroupQueue {
    /// The maximum number of batches in a group.
    private static let most = 32

    private let condition = NSCondition()
    private var waiting: [WaitingBatch] = []
    private var hasLeader = false

    /// Returns the result that `work` gave this batch, on this thread or on another batch's.
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
