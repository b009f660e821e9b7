// Losses on their way to the ledger.
internal import Host
internal import Streams

/// Losses that are not in the database yet.
struct LossTally: Sendable {
    private struct Key: Hashable {
        var stream: Stream
        var kind: LossKind
    }

    private var losses: [Key: Loss] = [:]

    var isEmpty: Bool { losses.isEmpty }

    var all: [Loss] { Array(losses.values) }

    mutating func add(_ loss: Loss) {
        let key = Key(stream: loss.stream, kind: loss.kind)
        guard var sum = losses[key] else { return losses[key] = loss }
        sum.records += loss.records
        if loss.from.boot < sum.from.boot { sum.from = loss.from }
        if loss.to.boot > sum.to.boot { sum.to = loss.to }
        losses[key] = sum
    }

    mutating func add(_ losses: [Loss]) {
        for loss in losses { add(loss) }
    }

    mutating func take() -> [Loss] {
        defer { losses.removeAll() }
        return all
    }
}
