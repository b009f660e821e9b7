// Decides when a device that was off its clock is trusted again.
import Host
import Records

/// The time for which a device must run at its rate after `CaptureFault.offClock`.
///
/// Until then it is not reported as working, and audio of a device that was too fast is not stored:
/// it has no date.
struct Probation {
    private let index: Int
    private let length: Duration
    private let isFast: Bool

    /// `ran`: how long device `index` ran until the fault; it would do so again.
    init?(after fault: CaptureFault, of index: Int, ran: Duration) {
        guard case .offClock(let ratio) = fault else { return nil }
        self.index = index
        length = min(max(.seconds(30), ran * 2), .seconds(300))
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
