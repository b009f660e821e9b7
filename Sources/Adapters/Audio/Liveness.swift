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

    private mutating func pace(_ captured: Int64, _ now: BootInstant) -> CaptureFault? {
        defer {
            if marks.last.map({ now - $0.at >= .milliseconds(900) }) ?? true {
                marks.append(Mark(captured: captured, at: now))
                marks.removeAll { now - $0.at > .seconds(32) }
            }
        }
        // A short look back finds what is far off at once, a long one what is little off.
        let recent = marks.last { now - $0.at >= .seconds(3) }
        for mark in [recent, marks.first].compactMap({ $0 }) where now - mark.at >= .seconds(3) {
            let due = (now - mark.at).inSeconds * rate
            let came = Double(captured - mark.captured)
            if abs(came - due) > due * Self.tolerance + slack { return .offClock(came / due) }
        }
        return nil
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
