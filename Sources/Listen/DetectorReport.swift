// Reports to a detector's user: faults at once, their repetitions in sums.
import Host

/// Counts segments and lines; a fault is reported when it is new, then in sums once per interval.
struct DetectorReport {
    /// The cases of one kind of fault.
    private struct Tally {
        /// Kinds of reasons; those beyond it are only counted.
        private static let maxReasons = 16

        private(set) var count = 0
        /// Those that were not reported yet.
        private(set) var pending = 0
        /// When each kind of reason may be reported in words again, and the pause after that.
        private var reasons: [String: (next: BootInstant, pause: Duration)] = [:]

        /// Counts a case; returns true if it is to be reported in words.
        ///
        /// A reason is reported at once, then after pauses that double. Numbers and quotations in it
        /// may be others each time, so its kind is the text before the first of them.
        mutating func add(_ reason: String, at now: BootInstant, _ interval: Duration) -> Bool {
            count += 1
            let kind = String(reason.prefix { !$0.isNumber && $0 != "\"" })
            let known = reasons[kind]
            guard known.map({ $0.next <= now }) ?? (reasons.count < Self.maxReasons) else {
                pending += 1
                return false
            }
            let pause = known?.pause ?? interval
            reasons[kind] = (now + pause, pause * 2)
            return true
        }

        mutating func report() { pending = 0 }
    }

    private let interval: Duration
    private let warn: @Sendable (String) -> Void
    private var (begunCount, printedCount) = (0, 0)
    private var (failures, skips, refusals) = (Tally(), Tally(), Tally())
    private var reportedAt: BootInstant

    init(interval: Duration, now: BootInstant, warn: @escaping @Sendable (String) -> Void) {
        (self.interval, reportedAt, self.warn) = (interval, now, warn)
    }

    /// When the sums are due; nil if there is nothing to report.
    var due: BootInstant? {
        failures.pending + skips.pending + refusals.pending > 0 ? reportedAt + interval : nil
    }

    mutating func begun() { begunCount += 1 }
    mutating func printed() { printedCount += 1 }

    mutating func skipped(at now: BootInstant) {
        if skips.add("", at: now, interval) {
            warn("skipped a segment: CMD takes longer than a segment; sums follow each minute")
        }
    }

    mutating func left(_ samples: Int, rate: Int) {
        warn("\(roughSeconds(samples, rate: rate)) before a gap make no whole segment")
    }

    mutating func failed(_ segment: AudioSegment, _ fault: String, at now: BootInstant) {
        guard failures.add(fault, at: now, interval) else { return }
        warn("segment \(segment.start.rfc3339): CMD failed: \(fault)")
    }

    mutating func refused(_ segment: AudioSegment, _ reason: String, at now: BootInstant) {
        guard refusals.add(reason, at: now, interval) else { return }
        warn("segment \(segment.start.rfc3339): a line of CMD is not stored: \(reason)")
    }

    mutating func check(_ now: BootInstant) {
        guard let due, due <= now else { return }
        warn(sums)
        reportedAt = now
        failures.report()
        skips.report()
        refusals.report()
    }

    private var sums: String {
        "so far: \(begunCount) segments, \(failures.count) failed, \(skips.count) skipped, "
            + "\(printedCount) records, \(refusals.count) lines not stored"
    }

    // MARK: The end

    func stored(_ accepted: Int, refused: Int) {
        warn("\(accepted) records on the disk, \(refused) refused by the gateway")
    }

    func unknown(_ reason: String) {
        warn("not known whether the last records were stored: \(reason)")
    }

    func finish(lost: Int) {
        warn("\(sums), \(lost) samples lost")
    }
}
