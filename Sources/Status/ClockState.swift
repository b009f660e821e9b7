// The state of the wall clock on the status board.
import Host

/// The state of the wall clock in this boot.
package struct ClockState: Sendable, Equatable {
    /// Whether the kernel or a GNSS receiver has vouched for the clock in this boot.
    ///
    /// Stays true, because later steps are noticed.
    package var isSynced: Bool
    /// The sum of all steps of the clock since the start, in seconds.
    package var steppedSeconds: Double
    /// A time source that contradicts the one that is believed.
    package var contradiction: ClockContradiction?

    package init(isSynced: Bool, steppedSeconds: Double, contradiction: ClockContradiction? = nil) {
        self.isSynced = isSynced
        self.steppedSeconds = steppedSeconds
        self.contradiction = contradiction
    }
}
