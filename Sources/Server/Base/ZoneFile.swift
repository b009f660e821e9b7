// Files of the time zone database (TZif, RFC 8536).
import Host

/// A zone's changes of offset, and the rule for the years after them; times are seconds since 1970.
struct ZoneFile: Sendable {
    /// A part of the file: the numbers of its header, and where its data begin and end.
    private struct Block {
        let (leapSeconds, changes, kinds): (Int, Int, Int)
        let start: Int
        let end: Int

        /// `width`: bytes of a time.
        init?(_ bytes: [UInt8], at place: Int, width: Int) {
            let counts = (0..<6).compactMap { index in
                ZoneFile.number(bytes, place + 20 + 4 * index, 4).flatMap { Int(exactly: $0) }
            }
            guard counts.count == 6, counts.allSatisfy({ (0...bytes.count).contains($0) }),
                bytes[place...].starts(with: "TZif".utf8), bytes[place + 4] >= UInt8(ascii: "2")
            else { return nil }
            (leapSeconds, changes, kinds) = (counts[2], counts[3], counts[4])
            start = place + 44
            let others = counts[0] + counts[1] + leapSeconds * (width + 4) + counts[5]
            end = start + changes * (width + 1) + kinds * 6 + others
        }
    }

    private let first: Int64
    private var changes: [(time: Int64, offset: Int64)] = []
    private var rule: YearlyRule?

    init(offset: Int64) { first = offset }

    /// Nil for a file that is not valid, of version 1, or with leap seconds (`right/…`).
    init?(_ bytes: [UInt8]) {
        guard let old = Block(bytes, at: 0, width: 4),
            let block = Block(bytes, at: old.end, width: 8),
            block.leapSeconds == 0, block.end < bytes.count, bytes[block.end] == 10
        else { return nil }
        let kinds = block.start + 8 * block.changes
        // RFC 8536, 3.2: more than -25 h and less than 26 h.
        let offsets = (0..<block.kinds).compactMap { index in
            Self.number(bytes, kinds + block.changes + 6 * index, 4)
        }.filter { (-89_999...93_599).contains($0) }
        guard let first = offsets.first, offsets.count == block.kinds else { return nil }
        self.first = first
        for index in 0..<block.changes {
            let kind = Int(bytes[kinds + index])
            guard let time = Self.number(bytes, block.start + 8 * index, 8), kind < offsets.count,
                changes.last.map({ $0.time < time }) ?? true
            else { return nil }
            changes.append((time, offsets[kind]))
        }
        let footer = bytes[(block.end + 1)...].prefix { $0 != 10 }
        rule = YearlyRule(String(decoding: footer, as: UTF8.self))
        guard footer.endIndex < bytes.count, footer.isEmpty || rule != nil else { return nil }
    }

    /// Reads a signed number, the high byte first; nil beyond the end.
    private static func number(_ bytes: [UInt8], _ place: Int, _ count: Int) -> Int64? {
        guard place >= 0, place + count <= bytes.count else { return nil }
        let sign: Int64 = bytes[place] >= 0x80 ? -1 : 0
        return bytes[place..<place + count].reduce(sign) { $0 << 8 | Int64($1) }
    }

    /// Returns the seconds by which local time is ahead of UTC.
    func offset(at time: Int64) -> Int64 {
        if let rule, time >= changes.last?.time ?? .min { return rule.offset(at: time) }
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle].time <= time { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? first : changes[low - 1].offset
    }
}
