// Which sightings are kept: allow list, deny list, and so many a second of each beacon.
internal import Host
package import Store

/// Allow and deny lists (contract, section 2): patterns for address, beacon id, or `kind:NAME`.
package struct BeaconFilter: Sendable {
    private let allow: [[UInt8]]
    private let deny: [[UInt8]]

    package init(allow: [String], deny: [String]) {
        self.allow = allow.map { Array($0.lowercased().utf8) }
        self.deny = deny.map { Array($0.lowercased().utf8) }
    }

    /// Deny wins; an empty allow list admits all.
    package func admits(_ identity: BeaconIdentity) -> Bool {
        guard !(allow.isEmpty && deny.isEmpty) else { return true }
        return !anyMatches(deny, identity) && (allow.isEmpty || anyMatches(allow, identity))
    }

    /// `kind:NAME` of each kind, by its number.
    private static let kinds: [[UInt8]] = (0...(BeaconKind.allCases.map(\.rawValue).max() ?? 0))
        .map { number in BeaconKind(rawValue: number).map { Array("kind:\($0.name)".utf8) } ?? [] }

    private func anyMatches(_ patterns: [[UInt8]], _ identity: BeaconIdentity) -> Bool {
        // The kind first: the other names have to be made, and often it decides alone.
        let kind = Self.kinds[identity.kind.rawValue]
        if patterns.contains(where: { Self.matches($0[...], kind[...]) }) { return true }
        guard !patterns.isEmpty else { return false }
        let names = [Self.folded(identity.address.description), Self.folded(identity.beaconID)]
        return patterns.contains { pattern in
            names.contains { Self.matches(pattern[...], $0[...]) }
        }
    }

    /// Lower case; addresses and ids are ASCII.
    private static func folded(_ text: String) -> [UInt8] {
        text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }

    /// Whether the text fits, where `*` stands for any run of characters.
    ///
    /// Never more than their lengths multiplied in time: only the last `*` is gone back to.
    static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
        var (at, place) = (pattern.startIndex, text.startIndex)
        var star: (at: Int, place: Int)?
        while true {
            if at < pattern.endIndex, pattern[at] == UInt8(ascii: "*") {
                at += 1
                star = (at, place)
            } else if at < pattern.endIndex, place < text.endIndex, pattern[at] == text[place] {
                at += 1
                place += 1
            } else if at == pattern.endIndex, place == text.endIndex {
                return true
            } else if let last = star, last.place < text.endIndex {
                star = (last.at, last.place + 1)
                (at, place) = (last.at, last.place + 1)
            } else {
                return false
            }
        }
    }
}

/// Keeps at most so many sightings of a beacon in any stretch of time.
///
/// A beacon is its kind and id: an id heard from a new address is still the same beacon.
struct RateLimit {
    /// Beacons remembered; with more, those not heard in the last stretch are forgotten.
    static let limit = 4096

    private struct Key: Hashable {
        var kind: BeaconKind
        var id: String
    }

    /// When the last sightings were kept, as a ring: `next` is the oldest once the ring is full.
    private struct Kept {
        var times: [BootInstant] = []
        var next = 0
        var newest: BootInstant

        /// In place: with the whole `RateLimit` at hand, each call would copy the table it is in.
        mutating func admits(at now: BootInstant, count: Int, stretch: Duration) -> Bool {
            if times.count < count {
                times.append(now)
            } else {
                guard now - times[next] >= stretch else { return false }
                times[next] = now
                next = (next + 1) % count
            }
            newest = now
            return true
        }
    }

    /// This many may be kept in each `stretch`.
    private let count: Int
    private let stretch: Duration
    private var kept: [Key: Kept] = [:]

    /// `rate`: sightings a second, above 0; 4 means four in any second, 0.5 one in any two.
    init(rate: Double) {
        let rate = min(max(rate, 0.001), 1000)
        count = Int(rate.rounded(.up))
        stretch = .milliseconds(Int64(Double(count) / rate * 1000))
    }

    mutating func admits(_ identity: BeaconIdentity, at now: BootInstant) -> Bool {
        let key = Key(kind: identity.kind, id: identity.beaconID)
        guard let index = kept.index(forKey: key) else {
            if kept.count >= Self.limit { forget(before: now - stretch) }
            kept[key] = Kept(times: [now], newest: now)
            return true
        }
        return kept.values[index].admits(at: now, count: count, stretch: stretch)
    }

    private mutating func forget(before moment: BootInstant) {
        kept = kept.filter { $0.value.newest > moment }
        // All of them active: starting over lets a few extra sightings through, and bounds memory.
        if kept.count >= Self.limit { kept.removeAll(keepingCapacity: true) }
    }
}
