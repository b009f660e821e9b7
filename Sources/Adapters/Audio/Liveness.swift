// Whether a device that reports no error does its work.
import Host

/// Judges a device by the frames that it delivers; a pure value.
struct Liveness {
    /// Without a frame for so long it is stalled.
    static let stallSeconds = 3
    /// Frames over time may be off by so much, as no quartz is.
    private static let tolerance = 0.01

    private struct Mark {
        var captured: Int64
        var at: BootInstant
    }

    private let rate: Double
    /// Frames by which a position may be behind: a device counts in periods.
    private let slack: Double
    private var newest: Mark?
    /// The first position with frames: where the dating of the run begins.
    private var first: Mark?
    /// Positions about a second apart that were in line, up to half a minute before the newest of them.
    private var marks: [Mark] = []
    /// The position before the first of those in a row that are off, and how many are.
    private var doubt: (before: Mark, count: Int)?

    /// `rate` and `period`: of the device.
    init(rate: Int, period: Int) {
        self.rate = Double(rate)
        slack = Double(min(period, rate / 2) + rate / 50)
    }

    /// The newest position is off: the next one says whether it was only late.
    var isInDoubt: Bool { doubt != nil }

    /// Takes a position and says what is wrong with it.
    mutating func check(captured: Int64, at now: BootInstant) -> CaptureFault? {
        let position = Mark(captured: captured, at: now)
        guard let last = newest, captured <= last.captured else {
            defer { newest = position }
            // A device may take a moment to begin.
            return captured > 0 ? pace(position, after: newest ?? position) : nil
        }
        return now - last.at >= .seconds(Self.stallSeconds) ? .stalled : nil
    }

    /// A position off its line twice in a row: one alone may be late, and catch up.
    ///
    /// While positions are in doubt the marks stay, so that a pause of any length is compared with what was before it.
    private mutating func pace(_ position: Mark, after last: Mark) -> CaptureFault? {
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

    /// The mark that a position does not fit to; nil for one that is in line.
    private func offended(by position: Mark, after last: Mark) -> Mark? {
        guard let oldest = marks.first else {
            // The first frames of a run may come as they like, unless the whole machine stood still.
            guard let first, isPause(last, position) else { return nil }
            return abs(excess(position, first)) > allowed(position, first) + rate ? first : nil
        }
        guard let recent = marks.last(where: { position.at - $0.at >= .seconds(3) }) else {
            return nil
        }
        // A short look back finds at once what is far off, a long one what is little off.
        let far = min(abs(excess(position, recent)), abs(excess(position, oldest)))
        let isOff =
            far > allowed(position, recent)
            || abs(excess(position, oldest)) > allowed(position, oldest)
        return isOff ? recent : nil
    }

    /// Positions are looked at once a second: where none was for so long, we did not run either.
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

    /// Frames that came since a mark beyond those that were due.
    private func excess(_ position: Mark, _ mark: Mark) -> Double {
        Double(position.captured - mark.captured) - (position.at - mark.at).inSeconds * rate
    }

    private func allowed(_ position: Mark, _ mark: Mark) -> Double {
        (position.at - mark.at).inSeconds * rate * Self.tolerance + slack
    }
}
