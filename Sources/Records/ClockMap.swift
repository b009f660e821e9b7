// Maps the clocks that a record saw to the time at which it was captured.
package import Host

/// How far a timestamp can be trusted (waypost-protocol(7), RECORDS).
package enum ClockQuality: String, Sendable {
    case synced
    /// Dated from the boot's sync by boot time, because the wall clock it saw was wrong.
    case corrected
    case unsynced

    /// Returns the one that can be trusted less.
    package func worse(_ other: Self) -> Self {
        [.unsynced, .corrected].first { self == $0 || other == $0 } ?? .synced
    }
}

/// The authority for a wall time.
package enum ClockSource: String, Sendable {
    /// The kernel's own bound on the clock's error, kept by an NTP client.
    case kernel
    case gpsd
}

/// The pairs of boot time and wall time recorded while the device ran, per boot.
///
/// With the entries up to a given row, a record always gets the same date, so a frozen batch has
/// the same bytes at each try. Entries that add no information (`isNews`) are dropped; that depends
/// only on the entries before them, so dropping them changes no date.
package struct ClockMap: Sendable {
    package struct Entry: Sendable, Equatable {
        package var id: Int64
        package var boot: Int64
        package var boottime: Int64
        package var wall: Int64
        package var synced: Bool
        /// The authority for it; nil without one, or in a row older than this column.
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

    /// A correct wall time at one point of a boot, both in ms.
    package struct Anchor: Sendable, Equatable {
        package var boottime: Int64
        package var wall: Int64
        package var source: ClockSource?

        /// Returns the correct wall time at another point of the same boot.
        package func wall(at boottime: Int64) -> Int64 { wall &+ (boottime &- self.boottime) }

        /// Returns how far `wall` is from the correct time, in ms.
        package func deviation(of wall: Int64, at boottime: Int64) -> UInt64 {
            (wall &- self.wall(at: boottime)).magnitude
        }
    }

    /// An anchor is kept at least this often (ms): `tolerance` grows with the distance from the
    /// anchor.
    package static let spacing: Int64 = 6 * 3_600_000

    /// An anchor contradicted within this time (ms) was wrong from the start.
    ///
    /// `pruneClockMap` keeps the entries of this span before the oldest record, so pruning changes
    /// no date.
    private static let trial: Int64 = 3_600_000

    /// Returns how far a correct clock may deviate `distance` ms after an anchor: 1 s plus 200 ppm.
    package static func tolerance(_ distance: Int64) -> UInt64 { 1000 + distance.magnitude / 5000 }

    /// The anchors of each boot, by ascending boot time.
    private var anchors: [Int64: [Anchor]] = [:]
    /// The newest entry added; a frozen batch refers to it.
    package private(set) var newest: Int64 = 0
    /// The newest entry if it adds no information; the next one may replace it.
    package private(set) var idle: Entry?
    /// The newest entry that corrected earlier anchors; 0 if none did.
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
        // Salvage of a quarantined database adds older entries after newer ones, so the next anchor
        // may also correct this one.
        for place in index..<min(index + 2, known.count)
        where Self.putRight(&known, before: place) {
            correction = max(correction, entry.id)
        }
        invariant(
            index == 0 || known[index - 1].boottime <= entry.boottime,
            "anchors of a boot ascend"
        )
        anchors[entry.boot] = known
    }

    /// Corrects the anchors just before one if it shows that they were wrong from the start.
    ///
    /// A router often gives a time before it has one itself, and a GNSS receiver before it knows
    /// the leap seconds. Anchors older than an hour are kept: then the newer one may be wrong.
    private static func putRight(_ known: inout [Anchor], before index: Int) -> Bool {
        let anchor = known[index]
        guard index > 0, anchor.corrects(known[index - 1]) else { return false }
        // Anchors that agree with each other are corrected together.
        var first = index - 1
        while first > 0, known[first].agrees(with: known[first - 1]) { first -= 1 }
        guard anchor.boottime &- known[first].boottime < trial else { return false }
        for place in first..<index {
            known[place].wall = anchor.wall(at: known[place].boottime)
            known[place].source = anchor.source
        }
        return true
    }

    /// Returns true for the first entry of a boot, for one that contradicts the anchor before, and
    /// for one long after it.
    private func isNews(_ entry: Entry, at index: Int) -> Bool {
        guard index > 0, let before = anchors[entry.boot]?[index - 1] else { return true }
        let distance = entry.boottime &- before.boottime
        return distance >= Self.spacing
            || before.deviation(of: entry.wall, at: entry.boottime) > Self.tolerance(distance) / 4
    }

    /// Returns the best known time of a record stamped in `boot`.
    ///
    /// Before the boot's first anchor, the record is dated from that anchor. After an anchor, its
    /// own wall clock is used if the nearest earlier anchor agrees; otherwise it is dated from that
    /// anchor, because the clock was stepped since or never set. In a boot without an anchor it
    /// keeps the wall time it saw.
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

    /// Returns the newest anchor of a boot at or before a boot time (ms).
    package func anchor(of boot: Int64, at boottime: Int64 = .max) -> Anchor? {
        guard let known = anchors[boot] else { return nil }
        let index = known.firstPlace { $0.boottime > boottime }
        return index > 0 ? known[index - 1] : nil
    }

    /// The number of anchors in memory.
    package var count: Int { anchors.values.reduce(0) { $0 + $1.count } }
}

extension ClockMap.Anchor {
    fileprivate func agrees(with older: Self) -> Bool {
        older.deviation(of: wall, at: boottime) <= ClockMap.tolerance(boottime &- older.boottime)
    }

    /// Returns true if the older anchor cannot be right when this one is.
    ///
    /// A GNSS time never corrects an NTP time. It corrects another GNSS time only backwards: a
    /// board whose clocks stopped during sleep finds itself late, and was right before.
    fileprivate func corrects(_ older: Self) -> Bool {
        guard !agrees(with: older) else { return false }
        return source != .gpsd || older.source == .gpsd && wall < older.wall(at: boottime)
    }
}
