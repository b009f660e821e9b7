// From the clocks a record saw to the time it happened.
package import Host

/// How far a timestamp can be trusted (contract, section 3).
package enum ClockQuality: String, Sendable {
    case synced
    /// Captured before the boot's first sync, corrected since.
    case corrected
    case unsynced
}

/// The pairs of clocks noted while the board ran, boot by boot.
///
/// A value with its entries up to a given row resolves the same for ever: that is what makes a frozen
/// batch the same bytes at each try.
package struct ClockMap: Sendable {
    package struct Entry: Sendable, Equatable {
        package var id: Int64
        package var boot: Int64
        package var boottime: Int64
        package var wall: Int64
        package var synced: Bool
    }

    /// The first synced entry of each boot.
    private var anchors: [Int64: Entry] = [:]
    /// The newest entry seen; a batch is frozen with it.
    package private(set) var newest: Int64 = 0

    package init() {}

    package mutating func add(_ entry: Entry) {
        newest = max(newest, entry.id)
        if entry.synced, anchors[entry.boot] == nil { anchors[entry.boot] = entry }
    }

    /// When a record stamped in `boot` really happened, as far as is known.
    package func resolve(_ stamp: Stamp, boot: Int64) -> (wall: WallTime, quality: ClockQuality) {
        guard let anchor = anchors[boot] else { return (stamp.wall, .unsynced) }
        let since = stamp.boot.milliseconds &- anchor.boottime
        guard since < 0 else { return (stamp.wall, .synced) }
        return (WallTime(milliseconds: anchor.wall &+ since), .corrected)
    }
}
