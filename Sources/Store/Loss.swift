// What was lost, counted: by stream and kind, with the span of time it covers.
package import Host

/// How records came to be lost.
package enum LossKind: String, Sendable, CaseIterable {
    /// Stored, and deleted before they were uploaded because space had ended.
    case evicted
    /// In quarantine, and dropped by a person.
    case discarded
    /// Heard while the writer was too far behind.
    case overrun
    /// Sent by the device, and dropped on the way or damaged before it was understood; counted in packets.
    case missed
    /// Accepted while the disk refused for longer than memory lasts.
    case dropped
    /// Not readable any more in a database that was set aside.
    case corrupt
    /// Never captured: the source was gone, or stopped for want of space.
    case gap

    /// The event that tells of it (contract, section 3).
    var event: EventKind { self == .evicted || self == .discarded ? .evicted : .gap }
}

/// Records of one stream lost in one way: how many, and when the first and the last was captured.
package struct Loss: Sendable, Equatable {
    package var stream: Stream
    package var kind: LossKind
    package var records: Int64
    package var from: Stamp
    package var to: Stamp

    package init(_ kind: LossKind, _ stream: Stream, records: Int64, from: Stamp, to: Stamp) {
        self.kind = kind
        self.stream = stream
        self.records = records
        self.from = from
        self.to = to
    }
}

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
