// What a detector's user is told: faults at once, their repetitions in sums.
import Host

/// Counts segments and lines; a fault is reported when it is new, then once per interval.
struct DetectorReport {
    private let interval: Duration
    private let tell: @Sendable (String) -> Void
    private var counts = (begun: 0, failed: 0, skipped: 0, printed: 0, refused: 0)
    /// The counts that were reported last.
    private var told = (failed: 0, skipped: 0, refused: 0)
    /// The last fault and the last refusal that were reported in words.
    private var lastFault: String?
    private var lastRefusal: String?
    private var toldAt: BootInstant

    init(interval: Duration, now: BootInstant, tell: @escaping @Sendable (String) -> Void) {
        (self.interval, toldAt, self.tell) = (interval, now, tell)
    }

    private var isNews: Bool {
        (told.failed, told.skipped, told.refused)
            != (counts.failed, counts.skipped, counts.refused)
    }

    /// When the sums are due; nil if there is nothing to report.
    var due: BootInstant? { isNews ? toldAt + interval : nil }

    mutating func begun() { counts.begun += 1 }
    mutating func printed() { counts.printed += 1 }

    mutating func skipped() {
        counts.skipped += 1
        if counts.skipped == 1 {
            tell("skipped a segment: CMD takes longer than a segment; sums follow each minute")
            told.skipped = 1
        }
    }

    mutating func left(_ samples: Int, rate: Int) {
        tell("\(RoughSeconds(frames: samples, rate: rate)) before a gap make no whole segment")
    }

    mutating func failed(_ segment: SoundSegment, _ fault: String) {
        counts.failed += 1
        guard fault != lastFault else { return }
        lastFault = fault
        told.failed += 1
        tell("segment \(segment.start.rfc3339): CMD failed: \(fault)")
    }

    mutating func refused(_ segment: SoundSegment, _ reason: String) {
        counts.refused += 1
        guard reason != lastRefusal else { return }
        lastRefusal = reason
        told.refused += 1
        tell("segment \(segment.start.rfc3339): a line of CMD is not stored: \(reason)")
    }

    mutating func check(_ now: BootInstant) {
        guard let due, due <= now else { return }
        tell(sums)
        toldAt = now
        told = (counts.failed, counts.skipped, counts.refused)
    }

    private var sums: String {
        "so far: \(counts.begun) segments, \(counts.failed) failed, \(counts.skipped) skipped, "
            + "\(counts.printed) records, \(counts.refused) lines not stored"
    }

    // MARK: The end

    func stored(_ accepted: Int, refused: Int) {
        tell("\(accepted) records on the disk, \(refused) refused by the gateway")
    }

    func unknown(_ reason: String) {
        tell("not known whether the last records were stored: \(reason)")
    }

    func finish(lost: Int) {
        tell("\(sums), \(lost) samples lost")
    }
}
