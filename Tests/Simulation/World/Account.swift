// The account of one device: what it accepted, and what may have become of it.
internal import Queue
internal import Records

/// Whoever has an account: a device, as its uploader and the server see it.
protocol AccountHolder: AnyObject {
    var account: Account { get set }
    var number: Int { get }
}

/// What one device took, by the number of the stream; a value, so that copies and rollbacks are easy.
struct Account {
    /// Serial numbers of records that it was given.
    var taken: [Int: [Int]] = [:]
    /// Records that a source said were lost.
    var noted: [Int: Int] = [:]
    /// Records, and losses, since everything was on the disk: a crash may cost them.
    var uncertain: [Int: Int] = [:]
    /// All that crashes may have cost.
    var cost: Int { gap.values.reduce(0) { $0 + max(0, $1) } }
    /// The same of programs that have vanished, until it is seen what they left.
    var atRisk: [Int: Int] = [:]
    /// Records that are nowhere and not in the ledger: what crashes have cost so far.
    var gap: [Int: Int] = [:]
    /// What crashes may have cost besides, while records of an older database are there that were told as gone.
    var hidden: [Int: Int] = [:]
    /// Records that were refused, and may be there all the same.
    var mayHaveLanded: [Int: Int] = [:]
    /// Serial numbers of segments that it was given.
    var segments: [Int] = []
    /// Segments that crashes have cost.
    var segmentGap = 0
    var uncertainSegments = 0
    var segmentsAtRisk = 0
    /// Records that are at the server, as the device was told.
    var acknowledged: Set<Int> = []
    /// Records of which the device may not know that the server has them.
    var ambiguous: Set<Int> = []
    /// How many of those are not looked for any more.
    var silent: [Int: Int] = [:]
    /// The database was changed from outside: what is lost cannot all be known.
    var isDamaged = false
    /// A database was set aside: a run of sound went on in the next one as another run.
    var wasSetAside = false
    /// Bytes of it were changed: what a record says may be anything, for SQLite has no checksums.
    var isGarbled = false
    /// The disk did not give all of a damaged database as it was checked at the start: the first read that meets the
    /// damage finds it.
    var isUnchecked = false
    /// What could still be read after its file was cut.
    var readable: Set<Int> = []
    var readableSegments: Set<Int> = []

    mutating func take(_ serial: Int, _ stream: Int) {
        taken[stream, default: []].append(serial)
        uncertain[stream, default: 0] += 1
    }

    mutating func takeSegment(_ serial: Int) {
        segments.append(serial)
        uncertainSegments += 1
    }

    mutating func note(_ records: Int, _ stream: Int) {
        noted[stream, default: 0] += records
        uncertain[stream, default: 0] += records
    }

    /// The program is gone: what was not on the disk may be lost, or not.
    mutating func vanish() {
        for (stream, records) in uncertain { atRisk[stream, default: 0] += records }
        segmentsAtRisk += uncertainSegments
        settle(isRecording: false)
    }

    /// The program has ended, and gave back what it found no disk for.
    mutating func end(_ losses: [Loss]) {
        for (stream, records) in uncertain {
            let told = losses.filter { $0.stream.number == stream }.reduce(0) { $0 + $1.records }
            uncertain[stream] = min(records, Int(told))
        }
        if !losses.contains(where: { $0.stream == .audio }) { uncertainSegments = 0 }
    }

    /// A sync has failed: what is seen after it need not be on the disk (fsync(2), Linux since 4.13).
    var hasFailedSync = false

    /// A write may have failed since the program started.
    var hasFailedWrite = false

    /// The disk took nothing for a while since the program started: what came then may wait in memory still.
    var isLate = false {
        didSet { if isLate { wasLate = true } }
    }
    /// That was so once: sound that waited may go on as another run.
    private(set) var wasLate = false

    /// What vanished programs left has been seen.
    mutating func look() {
        if hasFailedSync { return }
        atRisk.removeAll(keepingCapacity: true)
        segmentsAtRisk = 0
    }

    /// Everything is on the disk; of a run that goes on, a segment may be missing that the next one will show.
    mutating func settle(isRecording: Bool) {
        uncertain.removeAll(keepingCapacity: true)
        if !isRecording { uncertainSegments = 0 }
    }
}
