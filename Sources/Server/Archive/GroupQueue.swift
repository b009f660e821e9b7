// Group commit: batches that wait for the disk are stored together.
import Host
package import ServerBase

/// The result of storing a batch.
package struct Receipt: Sendable, Equatable {
    package var accepted: Int
    package var duplicates: Int

    package init(accepted: Int, duplicates: Int) {
        (self.accepted, self.duplicates) = (accepted, duplicates)
    }
}

/// A batch whose thread waits for the result.
package final class WaitingBatch {
    package let batch: IncomingBatch
    package let key: String
    /// Valid as long as the thread waits.
    package let body: ByteView
    package var result: Result<Receipt, any Error>?

    package init(batch: IncomingBatch, key: String, body: ByteView) {
        self.batch = batch
        self.key = key
        self.body = body
    }
}

/// Runs the work of all waiting batches in groups: the first thread that finds no leader becomes
/// the leader.
final class GroupQueue: Sendable {
    /// The maximum number of batches in a group.
    private static let maximum = 32

    private let state = Condition((waiting: [WaitingBatch](), hasLeader: false))

    /// Returns the result that `work` gave this batch, on this thread or on another batch's.
    func perform(_ mine: WaitingBatch, _ work: ([WaitingBatch]) -> Void) throws -> Receipt {
        state.withLock { $0.waiting.append(mine) }
        while true {
            let group = state.wait(until: { !$0.hasLeader || mine.result != nil }) { state in
                guard mine.result == nil else { return [WaitingBatch]() }
                state.hasLeader = true
                let group = Array(state.waiting.prefix(Self.maximum))
                state.waiting.removeFirst(group.count)
                return group
            }
            if let result = mine.result { return try result.get() }
            work(group)
            mustHold(
                group.allSatisfy { $0.result != nil },
                "each batch of a group has a result"
            )
            state.change { $0.hasLeader = false }
        }
    }
}
