// Detects devices that stop or run off the clock without reporting an error.
import Host

/// Evaluates the frames that a device delivers; a pure value.
struct Liveness {
    /// A device without a frame for this long is stalled.
    static let stallSeconds = 3
    /// Seconds of sound that a device may have when it starts, as a sound server does.
    static let backlog = 2.5
    /// Allowed relative error of the frame rate; no quartz is this far off.
    private static let tolerance = 0.01

    private struct Mark {
        var captured: Int64
        var at: BootInstant
    }

    private let rate: Double
    /// Frames by which a position may lag, because devices count in periods.
    private let slack: Double
    private var newest: Mark?
    /// The first position with frames, from which the run is dated.
    private var first: Mark?
    /// The start of the device, before which it had no frames.
    private let started: Mark
    /// Plausible positions about a second apart, over the last half minute.
    private var marks: [Mark] = []
    /// The position before the current series of implausible ones, and their number.
    private var doubt: (before: Mark, count: Int)?

    /// `rate` and `period` are the device's, `started` is at or before its start.
    init(rate: Int, period: Int, started: BootInstant) {
        self.rate = Double(rate)
        self.started = Mark(captured: 0, at: started)
        slack = Double(min(period, rate / 2) + rate / 50)
    }

    /// The newest position is implausible; the next one shows whether it was only late.
    var isInDoubt: Bool { doubt != nil }

    /// Checks a new position; returns a fault, if any.
    mutating func check(captured: Int64, at now: BootInstant) -> CaptureError? {
        let position = Mark(captured: captured, at: now)
        guard let last = newest, captured <= last.captured else {
            defer { newest = position }
            // A device may need a moment to start.
            return captured > 0 ? pace(position, after: newest ?? position) : nil
        }
        return now - last.at >= .seconds(Self.stallSeconds) ? .stalled : nil
    }

    /// Returns a fault after two implausible positions in a row; a single one may be late and catch
    /// up.
    ///
    /// While positions are in doubt the marks stay, so that a pause of any length is compared with
    /// positions before it.
    private mutating func pace(_ position: Mark, after last: Mark) -> CaptureError? {
        if let ratio = excessRatio(of: position) { return .offClock(ratio) }
        first = first ?? position
        let before = doubt?.before ?? last
        guard let mark = offended(by: position, after: before) else {
            doubt = nil
            keep(position)
            return nil
        }
        let count = (doubt?.count ?? 0) + 1
        doubt = (before, count)
        guard count >= 2 else { return nil }
        let missing = -excess(position, before) / rate
        if missing > 1, isPause(before, position) { return .paused(.seconds(missing)) }
        return .offClock(1 + excess(position, mark) / ((position.at - mark.at).inSeconds * rate))
    }

    /// Returns the ratio of frames since the start to those expected if more came than time passed.
    ///
    /// A sound server may begin with a backlog, so the frames since the first position must be too
    /// many, too.
    private func excessRatio(of position: Mark) -> Double? {
        let (excess, since) = (excess(position, started), first ?? position)
        guard excess > allowed(position, started),
            excess > Self.backlog * rate || self.excess(position, since) > allowed(position, since)
        else { return nil }
        return 1 + excess / (max(0.1, (position.at - started.at).inSeconds) * rate)
    }

    /// Returns the mark that contradicts a position; nil if the position is plausible.
    private func offended(by position: Mark, after last: Mark) -> Mark? {
        guard let oldest = marks.first else {
            // The first frames of a run may arrive at any pace, unless the whole machine paused.
            guard let first, isPause(last, position) else { return nil }
            return abs(excess(position, first)) > allowed(position, first) + rate ? first : nil
        }
        guard let recent = marks.last(where: { position.at - $0.at >= .seconds(3) }) else {
            return nil
        }
        // Comparing with a recent mark finds large errors at once, with an old mark small errors.
        let far = min(abs(excess(position, recent)), abs(excess(position, oldest)))
        let isOff =
            far > allowed(position, recent)
            || abs(excess(position, oldest)) > allowed(position, oldest)
        return isOff ? recent : nil
    }

    /// Positions are checked once per second, so a longer interval means that we did not run
    /// either.
    private func isPause(_ last: Mark, _ position: Mark) -> Bool {
        position.at - last.at >= .seconds(Self.stallSeconds)
    }

    private mutating func keep(_ position: Mark) {
        guard Double(position.captured) > 1.5 * rate,
            marks.last.map({ position.at - $0.at >= .milliseconds(900) }) ?? true
        else { return }
        marks.append(position)
        marks.removeAll { position.at - $0.at > .seconds(32) }
    }

    /// Frames received since a mark, minus those expected.
    private func excess(_ position: Mark, _ mark: Mark) -> Double {
        Double(position.captured - mark.captured) - (position.at - mark.at).inSeconds * rate
    }

    private func allowed(_ position: Mark, _ mark: Mark) -> Double {
        (position.at - mark.at).inSeconds * rate * Self.tolerance + slack
    }
}
