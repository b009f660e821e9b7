// The parts of an effort account: points in time, spans and closed intervals.
import Host
import Records

/// A change of a source, as its effort account gets it.
package enum SourceEffort: Sendable, Equatable {
    /// It starts or restarts and does not record yet.
    case starting
    case listening
    case failed(String)
    case scheduledOff(String)
    /// It was stopped on purpose, or may not run.
    case off(String)
}

/// A point in time of a boot, by the boot's name: its row differs between databases.
struct EffortTime: Sendable, Equatable {
    var boot: String
    var stamp: Stamp

    /// The time from `earlier` in whole milliseconds, as stored; nil across boots.
    func milliseconds(since earlier: Self) -> Int64? {
        guard boot == earlier.boot else { return nil }
        return stamp.boot.milliseconds - earlier.stamp.boot.milliseconds
    }

    func advanced(by milliseconds: Int64) -> Self {
        Self(boot: boot, stamp: stamp.advanced(by: .milliseconds(milliseconds)))
    }

    /// Returns whether it is later than a time of the same or an earlier boot.
    func isAfter(_ earlier: Self) -> Bool { milliseconds(since: earlier) ?? 1 > 0 }

    /// The points in time are equal when they are stored equally.
    static func == (left: Self, right: Self) -> Bool { left.milliseconds(since: right) == 0 }
}

/// A span of an account; it lasts until the next one begins.
struct EffortSpan: Sendable, Equatable {
    enum State: String, Sendable {
        /// Audio only: the device is open, and nothing of this span is stored yet.
        case listening
        case recorded, failed, off, unknown
        case scheduledOff = "scheduled_off"
    }

    var from: EffortTime
    var state: State
    var reason = ""
    /// The next number of the source's stream when it began; nil if not known.
    var number: Int64?
    /// It begins at midnight only to end the span before it.
    var isCut = false

    /// The source meant to record.
    var isOn: Bool { state == .listening || state == .recorded }
}

/// A closed interval, to be stored as a record.
struct SealedSpan: Sendable, Equatable {
    var state: EffortState
    var reason: String
    var from: EffortTime
    var to: EffortTime
    var records: Int64?
}

extension [EffortSpan] {
    /// Whether each begins where or after the one before it did, as far as one boot tells.
    var tiles: Bool {
        zip(self, dropFirst()).allSatisfy { $1.from.milliseconds(since: $0.from) ?? 0 >= 0 }
    }
}

extension [SealedSpan] {
    /// Whether each begins where the one before it ends.
    var tiles: Bool { zip(self, dropFirst()).allSatisfy { $0.to == $1.from } }
}

/// The changes of the accounts in a transaction; applied with its commit.
struct EffortNotes: Sendable {
    /// Stored audio: its first frame, the end of its last one, and whether it continues the segment
    /// before it without a gap.
    struct Heard: Sendable {
        var from: Stamp
        var to: Stamp
        var isContinued: Bool
    }

    var heard: [Heard] = []
    var losses: [Loss] = []
    /// The accounts of a quarantined database.
    var inherited: [InheritedEffort] = []

    mutating func record(_ loss: Loss) {
        // Removed records were recorded first; their own events report them.
        guard !loss.kind.isOfRemoval, EffortBook.sources.contains(loss.stream) else { return }
        losses.append(loss)
    }
}

/// The accounts that another database holds, and the last signs of life in it.
struct InheritedEffort: Sendable {
    var text: String
    /// When anything was last stored, and where its audio ends; nil if that cannot be read.
    var end: EffortTime?
    var endOfAudio: EffortTime?
}

extension LossKind {
    /// Names the cause in an effort record.
    var cause: String {
        switch self {
        case .overrun: "overrun: records came faster than they could be stored"
        case .missed: "missed: the device reported lost packets"
        case .dropped: "disk: records could not be stored"
        case .gap: "gap: the source did not deliver"
        case .evicted, .unmarked, .discarded, .corrupt: rawValue
        }
    }
}
