// The ground truth: every record that sources made, with its content, and every boot.
internal import Host
internal import Records

/// A record as its source made it; its serial number is its index in `Truth.records`.
struct Known {
    /// The stream's number.
    var stream: Int
    /// The beacon's number; -1 if it is not a sighting.
    var beacon = -1
    /// The number of its boot, which also identifies the device.
    var boot: Int
    /// In ms: boot time, the device's wall clock, and the real time.
    var boottime: Int64
    var wall: Int64
    var truth: Int64
    /// The timestamp given by its program.
    var given: Int64?
}

/// An audio segment, numbered like records.
struct KnownSegment {
    /// The run of its source, and its index in it.
    var run: Int
    var index: Int
    /// The number of segments that a chunk of its run shares with the previous one.
    var overlap: Int
    var frames: Int
    var boot: Int
    var boottime: Int64
    var wall: Int64
    var truth: Int64
}

/// A boot of a device.
struct Boot {
    var name: String
    /// The real time (ms) at its boot time 0.
    var origin: Int64
    /// Boot times (ms) at which the wall clock was synchronised.
    var syncs: [Int64] = []
    /// It was synchronised, though that may not have been stored.
    var isVouchedFor = false

    /// Synchronisations whose notes may be lost.
    var doubtful: [Int64] = []

    mutating func doubtSyncs() {
        isVouchedFor = isVouchedFor || !syncs.isEmpty
        doubtful += syncs
        syncs = []
    }
}

/// The ground truth of all devices of a world.
struct Truth {
    var records: [Known] = []
    var segments: [KnownSegment] = []
    var runs = 0
    var boots: [Boot] = []
    var identities: [BeaconIdentity] = []

    mutating func add(_ record: Known) -> Int {
        records.append(record)
        return records.count - 1
    }

    mutating func add(_ segment: KnownSegment) -> Int {
        segments.append(segment)
        return segments.count - 1
    }

    /// Returns whether a boot was synchronised before a record was stored.
    ///
    /// Not if both are of one instant: the record may have been first.
    func isDated(_ boot: Int, before stored: EffortAudit.Time) -> Bool {
        boots[boot].syncs.contains { boot < stored.boot || $0 < stored.boottime }
    }

    /// Returns how far a timestamp may be off, in ms; nil if the clock was never synchronised in
    /// that boot.
    func bound(_ boot: Int, _ boottime: Int64) -> Int64? {
        let syncs = boots[boot].syncs
        guard let first = syncs.first else { return boots[boot].isVouchedFor ? .max : nil }
        // One at the same instant may have come after the record was frozen.
        let before = syncs.last { $0 < boottime } ?? first
        // The clock map keeps one note per six hours of those that agree.
        let furthest = boots[boot].doubtful.map { abs(boottime - $0) }.max() ?? 0
        let distance = max(abs(boottime - before), furthest) + ClockMap.spacing
        return 1100 + distance / 5000
    }
}

/// Serial numbers as stored in records: three bytes after a marker.
enum Serial {
    private static let mark: UInt8 = 0x5A

    static func bytes(_ serial: Int, padding: Int = 0) -> [UInt8] {
        let head = [16, 8, 0].map { UInt8(truncatingIfNeeded: serial >> $0) }
        return [mark] + head
            + [UInt8](repeating: UInt8(truncatingIfNeeded: serial | 1), count: padding)
    }

    /// Returns whether the padding of a record is complete.
    static func isFilled(_ serial: Int, _ bytes: some Sequence<UInt8>) -> Bool {
        bytes.dropFirst(4).allSatisfy { $0 == UInt8(truncatingIfNeeded: serial | 1) }
    }

    static func isFilled(_ serial: Int, hex: String) -> Bool {
        let digits = Array("0123456789abcdef".utf8)
        let pair = [digits[(serial | 1) >> 4 & 15], digits[(serial | 1) & 15]]
        return hex.utf8.dropFirst(8).enumerated().allSatisfy { $1 == pair[$0 & 1] }
    }

    /// Returns the padding of a user's record: different letters in each, so that a page of another
    /// one is detected.
    static func text(_ serial: Int, count: Int) -> String {
        String(repeating: Character(letter(serial)), count: count)
    }

    static func isFilled(_ serial: Int, text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0 == letter(serial) }
    }

    private static func letter(_ serial: Int) -> UnicodeScalar {
        UnicodeScalar(UInt8(97 + serial % 26))
    }

    static func read(_ bytes: some Sequence<UInt8>) -> Int? {
        let head = Array(bytes.prefix(4))
        guard head.count == 4, head[0] == mark else { return nil }
        return head.dropFirst().reduce(0) { $0 << 8 | Int($1) }
    }

    static func read(hex: String) -> Int? {
        guard hex.count >= 8, let number = UInt32(hex.prefix(8), radix: 16) else { return nil }
        return number >> 24 == mark ? Int(number & 0xFF_FFFF) : nil
    }
}
