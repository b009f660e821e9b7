// Decides when a device that was off its clock is trusted again.
import Host
import Records

/// The time for which a device must run at its rate after `CaptureError.offClock`.
///
/// Until then it is not reported as working, and audio of a device that was too fast is not stored:
/// it has no date.
struct Probation {
    private let index: Int
    private let length: Duration
    private let isFast: Bool

    /// Nil after another fault.
    ///
    /// `ran`: how long device `index` ran until the fault. If that was soon, it would be soon again;
    /// one that ran well for long has rather met a clock that is being slewed.
    init?(after fault: CaptureError, of index: Int, ran: Duration) {
        guard case .offClock(let ratio) = fault else { return nil }
        self.index = index
        length = ran > .seconds(60) ? .seconds(30) : max(.seconds(30), ran * 2)
        isFast = ratio > 1
    }

    /// Returns when device `index`, started at `started`, is trusted; nil if it always was.
    func end(of index: Int, started: BootInstant) -> BootInstant? {
        index == self.index ? started + length : nil
    }

    /// Returns the part of `window` in which audio of device `index` is stored.
    func clip(_ window: RecordingWindow, of index: Int, started: BootInstant) -> RecordingWindow {
        var window = window
        if isFast, let end = end(of: index, started: started) {
            window.opens = max(end, window.opens ?? end)
        }
        return window
    }
}
