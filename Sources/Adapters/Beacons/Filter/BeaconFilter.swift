// The allow and deny lists of beacons.
import Host
package import Records

/// Allow and deny lists (waypost.toml(5), [beacons]) of addresses, beacon ids or `kind:NAME`.
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
        // Kind first: it often decides alone, and the other names cost time to make.
        let kind = Self.kinds[identity.kind.rawValue]
        if patterns.contains(where: { Self.matches($0[...], kind[...]) }) { return true }
        guard !patterns.isEmpty else { return false }
        let names = [identity.address.description, identity.beaconID].map {
            $0.utf8.map(\.asciiLowercased)
        }
        return patterns.contains { pattern in
            names.contains { Self.matches(pattern[...], $0[...]) }
        }
    }

    /// Returns whether the text matches; `*` matches any run of characters.
    ///
    /// Takes at most the product of both lengths: backtracks to the last `*` only.
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
