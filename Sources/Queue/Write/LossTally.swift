// Collects losses until they are recorded in the ledger.
import Host
import Records

/// Losses summed by stream and kind.
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

/// All losses that are not in the database yet.
struct NewLosses: Sendable {
    /// Losses that are not part of a commit yet.
    private var untaken = LossTally()
    /// Losses that the writer's next commit records.
    private(set) var held = LossTally()
    /// Counts the commits that were meant to record losses.
    private(set) var turn: Int64 = 0

    var isEmpty: Bool { untaken.isEmpty && held.isEmpty }

    var all: [Loss] {
        var sum = held
        sum.add(untaken.all)
        return sum.all
    }

    /// The pending losses, each with the number of the commit that records it.
    var underWay: [(loss: Loss, turn: Int64)] {
        held.all.map { ($0, turn) } + untaken.all.map { ($0, turn + 1) }
    }

    /// Moves all losses to the writer's next commit; returns everything it must record.
    mutating func take() -> [Loss] {
        held.add(untaken.take())
        if !held.isEmpty { turn += 1 }
        mustHold(untaken.isEmpty, "a loss is entered by one commit")
        return held.all
    }

    mutating func add(_ losses: [Loss]) { untaken.add(losses) }

    /// Forgets the held losses: they are in the database now.
    mutating func entered() { held = LossTally() }
}
