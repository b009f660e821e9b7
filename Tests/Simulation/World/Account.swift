// The account of one device: the records it accepted and their possible fates.
internal import Queue
internal import Records

/// An owner of an account: a device, as its uploader and the server see it.
protocol AccountHolder: AnyObject {
    var account: Account { get set }
    var number: Int { get }
}

/// Records that one device accepted, by stream number; a value, so copies and rollbacks are easy.
struct Account {
    /// Serial numbers of records that it was given.
    var taken: [Int: [Int]] = [:]
    /// Records that a source reported as lost.
    var noted: [Int: Int] = [:]
    /// Records and losses since everything was on the disk: a crash may lose them.
    var uncertain: [Int: Int] = [:]
    /// All records that crashes may have cost.
    var cost: Int { gap.values.reduce(0) { $0 + max(0, $1) } }
    /// The `uncertain` records of programs that were killed, until the disk shows what survived.
    var atRisk: [Int: Int] = [:]
    /// Records that are neither anywhere nor in the loss ledger: the cost of crashes so far.
    var gap: [Int: Int] = [:]
    /// Further possible crash losses, hidden while an older database holds records that were
    /// reported as evicted.
    var hidden: [Int: Int] = [:]
    /// Records that were refused, but may have been stored.
    var mayHaveLanded: [Int: Int] = [:]
    /// Serial numbers of segments that it was given.
    var segments: [Int] = []
    /// Segments that crashes have cost.
    var segmentGap = 0
    var uncertainSegments = 0
    var segmentsAtRisk = 0
    /// Marks of sound that are on the disk.
    var marks: [KnownMark] = []
    /// Records that the server has confirmed to the device.
    var acknowledged: Set<Int> = []
    /// Records that the server has, possibly without the device knowing.
    var ambiguous: Set<Int> = []
    /// The number of those that are no longer checked.
    var silent: [Int: Int] = [:]
    /// The database was changed from outside: not all losses can be known.
    var isDamaged = false
    /// A database was quarantined: a run of audio continued in the next one as another run.
    var wasSetAside = false
    /// Bytes of it were changed: a record may say anything, because SQLite has no checksums.
    var isGarbled = false
    /// The check of a damaged database at the start could not read all of it: a later read finds
    /// the damage.
    var isUnchecked = false
    /// Records that could still be read after their file was truncated.
    var readable: Set<Int> = []
    var readableSegments: Set<Int> = []

    mutating func receive(_ serial: Int, _ stream: Int) {
        taken[stream, default: []].append(serial)
        uncertain[stream, default: 0] += 1
    }

    mutating func addSegment(_ serial: Int) {
        segments.append(serial)
        uncertainSegments += 1
    }

    mutating func record(_ records: Int, _ stream: Int) {
        noted[stream, default: 0] += records
        uncertain[stream, default: 0] += records
    }

    /// Handles a killed program: records that were not on the disk may be lost.
    mutating func vanish() {
        for (stream, records) in uncertain { atRisk[stream, default: 0] += records }
        segmentsAtRisk += uncertainSegments
        settle(isRecording: false)
    }

    /// Handles an orderly end of the program, which returned the losses it could not write.
    mutating func end(_ losses: [Loss]) {
        for (stream, records) in uncertain {
            let reported = losses.filter { $0.stream.number == stream }.reduce(0) {
                $0 + $1.records
            }
            uncertain[stream] = min(records, Int(reported))
        }
        if !losses.contains(where: { $0.stream == .audio }) { uncertainSegments = 0 }
    }

    /// A sync has failed: what later reads see need not be on the disk (fsync(2), Linux since
    /// 4.13).
    var hasFailedSync = false

    /// A write may have failed since the program started.
    var hasFailedWrite = false

    /// The disk refused writes for a while since the program started: records of that time may
    /// still be in memory.
    var isLate = false {
        didSet { if isLate { wasLate = true } }
    }
    /// That happened once: audio in memory may continue as another run.
    private(set) var wasLate = false

    /// Clears the risk once the disk has shown what killed programs left.
    mutating func look() {
        if hasFailedSync { return }
        atRisk.removeAll(keepingCapacity: true)
        segmentsAtRisk = 0
    }

    /// Handles that everything is on the disk; an open run may miss a segment that the next one
    /// will reveal.
    mutating func settle(isRecording: Bool) {
        uncertain.removeAll(keepingCapacity: true)
        if !isRecording { uncertainSegments = 0 }
    }
}
