// Whether a device that reports no error does its work.
internal import Host

/// Judges a device by the frames that it delivers; a pure value.
struct Liveness {
    /// Without a frame for so long it is stalled.
    static let stallSeconds = 3
    /// Of one value for so long it is silent: a microphone always has noise of its own.
    static let silenceSeconds = 4
    /// Frames over time may be off by so much, as no quartz is.
    private static let tolerance = 0.01

    private struct Mark {
        var captured: Int64
        var at: BootInstant
    }

    private let rate: Double
    /// Frames by which a position may be behind: a device counts in periods.
    private let slack: Double
    private let silenceFrames: Int
    private var newest: Mark?
    /// Positions about a second apart, of the last half minute.
    private var marks: [Mark] = []
    /// Positions in a row that were off.
    private var offenders = 0
    private var constant: Int16?
    private var constantFrames = 0

    /// `rate` and `period`: of the device; `outputRate`: of the samples that are heard.
    init(rate: Int, period: Int, outputRate: Int) {
        self.rate = Double(rate)
        slack = Double(min(period, rate / 2) + rate / 50)
        silenceFrames = outputRate * Self.silenceSeconds
    }

    /// Takes a position and says what is wrong with it.
    mutating func check(captured: Int64, at now: BootInstant) -> CaptureFault? {
        guard let last = newest, captured <= last.captured else {
            newest = Mark(captured: captured, at: now)
            // A device may take a moment to begin.
            return captured > 0 ? pace(captured, now) : nil
        }
        return now - last.at >= .seconds(Self.stallSeconds) ? .stalled : nil
    }

    /// A position off its line twice in a row: one alone may be late, and catch up.
    private mutating func pace(_ captured: Int64, _ now: BootInstant) -> CaptureFault? {
        let position = Mark(captured: captured, at: now)
        // The first ones of a run are not to be relied on.
        guard Double(captured) > 1.5 * rate else { return nil }
        defer {
            if marks.last.map({ now - $0.at >= .milliseconds(900) }) ?? true {
                marks.append(position)
                marks.removeAll { now - $0.at > .seconds(32) }
            }
        }
        let recent = marks.last { now - $0.at >= .seconds(3) }
        guard let recent, let oldest = marks.first else { return nil }
        // A short look back finds at once what is far off, a long one what is little off.
        let far = min(abs(excess(position, recent)), abs(excess(position, oldest)))
        let isOff =
            far > allowed(position, recent)
            || abs(excess(position, oldest)) > allowed(position, oldest)
        offenders = isOff ? offenders + 1 : 0
        let due = (now - recent.at).inSeconds * rate
        return offenders >= 2 ? .offClock(1 + excess(position, recent) / due) : nil
    }

    /// Frames that came since a mark beyond those that were due.
    private func excess(_ position: Mark, _ mark: Mark) -> Double {
        Double(position.captured - mark.captured) - (position.at - mark.at).inSeconds * rate
    }

    private func allowed(_ position: Mark, _ mark: Mark) -> Double {
        (position.at - mark.at).inSeconds * rate * Self.tolerance + slack
    }

    /// Takes samples; true when there has been but one value for too long.
    mutating func isSilent(with samples: [Int16]) -> Bool {
        for sample in samples {
            guard sample == constant else {
                constant = sample
                constantFrames = 1
                continue
            }
            constantFrames += 1
        }
        return constantFrames >= silenceFrames
    }
}
