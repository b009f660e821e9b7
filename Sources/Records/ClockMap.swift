// From the clocks a record saw to the time it happened.
package import Host

/// How far a timestamp can be trusted (waypost-protocol(7), RECORDS).
package enum ClockQuality: String, Sendable {
    case synced
    /// Dated from the boot's sync by boot time, because the wall clock it saw was wrong.
    case corrected
    case unsynced
}

/// Who vouched for a wall time.
package enum ClockSource: String, Sendable {
    /// The kernel's own bound on the clock's error, kept by an NTP client.
    case kernel
    case gpsd
}

/// The pairs of clocks noted while the board ran, boot by boot.
///
/// With the entries up to a given row, a record always gets the same date: so a frozen batch is the same bytes at
/// each try. Entries that tell nothing new (`isNews`) are dropped. Whether an entry is news depends only on the entries
/// before it, so dropping some changes no date.
package struct ClockMap: Sendable {
    package struct Entry: Sendable, Equatable {
        package var id: Int64
        package var boot: Int64
        package var boottime: Int64
        package var wall: Int64
        package var synced: Bool
        /// Who vouched for it; nil when nobody did, or in a row older than this column.
        package var source: ClockSource?

        package init(
            id: Int64,
            boot: Int64,
            boottime: Int64,
            wall: Int64,
            synced: Bool,
            source: ClockSource? = nil
        ) {
            self.id = id
            self.boot = boot
            self.boottime = boottime
            self.wall = wall
            self.synced = synced
            self.source = source
        }
    }

    /// A wall time that was right at a moment of a boot, both in ms.
    package struct Anchor: Sendable, Equatable {
        package var boottime: Int64
        package var wall: Int64
        package var source: ClockSource?

        /// The right wall time at another moment of the same boot.
        package func wall(at boottime: Int64) -> Int64 { wall &+ (boottime &- self.boottime) }

        /// How far `wall` is from right, in ms.
        package func deviation(of wall: Int64, at boottime: Int64) -> UInt64 {
            (wall &- self.wall(at: boottime)).magnitude
        }
    }

    /// An anchor is kept at least this often (ms), because `tolerance` grows with the distance from the anchor.
    package static let spacing: Int64 = 6 * 3_600_000

    /// An anchor that is contradicted sooner (ms) was wrong from the first.
    ///
    /// `pruneClockMap` keeps what is known of as long before the oldest record: so what it forgets changes no date.
    private static let trial: Int64 = 3_600_000

    /// How far a right clock may be from what an anchor says `distance` ms later: 1 s and 200 ppm of it.
    package static func tolerance(_ distance: Int64) -> UInt64 { 1000 + distance.magnitude / 5000 }

    /// The anchors of each boot, by ascending boot time.
    private var anchors: [Int64: [Anchor]] = [:]
    /// The newest entry seen; a batch is frozen with it.
    package private(set) var newest: Int64 = 0
    /// The newest entry, if it is no news: the next one may replace it.
    package private(set) var idle: Entry?
    /// The newest entry that put others right; 0 where there is none.
    package private(set) var correction: Int64 = 0

    package init() {}

    package mutating func add(_ entry: Entry) {
        newest = max(newest, entry.id)
        let index = (anchors[entry.boot] ?? []).firstPlace { $0.boottime > entry.boottime }
        guard entry.synced, isNews(entry, at: index) else {
            idle = entry
            return
        }
        idle = nil
        var known = anchors.removeValue(forKey: entry.boot) ?? []
        known.insert(
            Anchor(boottime: entry.boottime, wall: entry.wall, source: entry.source),
            at: index
        )
        // A database that was set aside gives its entries after newer ones: the next anchor may know better, too.
        for place in index..<min(index + 2, known.count)
        where Self.putRight(&known, before: place) {
            correction = max(correction, entry.id)
        }
        anchors[entry.boot] = known
    }

    /// Has the anchors just before one say what it says, if it shows that they were wrong from the first.
    ///
    /// A router often gives a time before it has one itself, a receiver before it knows the leap seconds. What stood
    /// for an hour stays: then the newer one may be the wrong one.
    private static func putRight(_ known: inout [Anchor], before index: Int) -> Bool {
        let anchor = known[index]
        guard index > 0, anchor.corrects(known[index - 1]) else { return false }
        // Those that agree stand and fall together.
        var first = index - 1
        while first > 0, known[first].agrees(with: known[first - 1]) { first -= 1 }
        guard anchor.boottime &- known[first].boottime < trial else { return false }
        for place in first..<index {
            known[place].wall = anchor.wall(at: known[place].boottime)
            known[place].source = anchor.source
        }
        return true
    }

    /// True for the first entry of a boot, for one that contradicts the entry before, and for one long after it.
    private func isNews(_ entry: Entry, at index: Int) -> Bool {
        guard index > 0, let before = anchors[entry.boot]?[index - 1] else { return true }
        let distance = entry.boottime &- before.boottime
        return distance >= Self.spacing
            || before.deviation(of: entry.wall, at: entry.boottime) > Self.tolerance(distance) / 4
    }

    /// When a record stamped in `boot` really happened, as far as is known.
    ///
    /// Before the boot's first anchor it is dated from that one. After an anchor its own wall clock is believed
    /// if the nearest anchor before it agrees, and else it is dated from that: the clock was stepped since, or
    /// never set. A boot without an anchor has no date but the one it saw.
    package func resolve(_ stamp: Stamp, boot: Int64) -> (wall: WallTime, quality: ClockQuality) {
        guard let known = anchors[boot], let first = known.first else {
            return (stamp.wall, .unsynced)
        }
        let boottime = stamp.boot.milliseconds
        let index = known.firstPlace { $0.boottime > boottime }
        let anchor = index > 0 ? known[index - 1] : first
        let distance = boottime &- anchor.boottime
        if index > 0,
            anchor.deviation(of: stamp.wall.milliseconds, at: boottime) <= Self.tolerance(distance)
        {
            return (stamp.wall, .synced)
        }
        return (WallTime(milliseconds: anchor.wall(at: boottime)), .corrected)
    }

    /// The newest anchor of a boot at or before a boot time (ms).
    package func anchor(of boot: Int64, at boottime: Int64 = .max) -> Anchor? {
        guard let known = anchors[boot] else { return nil }
        let index = known.firstPlace { $0.boottime > boottime }
        return index > 0 ? known[index - 1] : nil
    }

    /// How many anchors are kept in memory.
    package var count: Int { anchors.values.reduce(0) { $0 + $1.count } }
}

extension ClockMap.Anchor {
    fileprivate func agrees(with older: Self) -> Bool {
        older.deviation(of: wall, at: boottime) <= ClockMap.tolerance(boottime &- older.boottime)
    }

    /// Whether the one before cannot be right if this one is.
    ///
    /// A receiver's word undoes no NTP client's. It undoes a receiver's only backwards: a board whose clocks stood still
    /// in its sleep finds itself late, and was right before.
    fileprivate func corrects(_ older: Self) -> Bool {
        guard !agrees(with: older) else { return false }
        return source != .gpsd || older.source == .gpsd && wall < older.wall(at: boottime)
    }
}
