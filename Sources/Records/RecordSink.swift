// The seam between a source and the rest of the gateway.
package import Host

/// The destination of a source's records: one run's way into the queue, or a test's recorder.
///
/// Used by the source's thread. No call waits for the disk; an `accept` that returns false has not
/// stored its record.
package protocol RecordSink: AnyObject, Sendable {
    func accept(_ sighting: Sighting) -> Bool
    func accept(_ fix: Fix) -> Bool
    func accept(_ segment: Segment) -> Bool
    func accept(_ event: Event)
    /// Records losses that no event reports.
    func record(_ loss: Loss)
    /// Reports a deviation from the settings to `status` and the log.
    func warn(_ message: String)

    /// Takes each advertisement as received, before filter and throttle; nil if nobody wants them.
    var tap: AdvertisementTap? { get }
    /// Takes recorded audio, beside the queue; nil if nobody can listen.
    var soundTap: AudioTap? { get }

    /// Whether a source that can wait (a replay) may continue.
    var hasRoom: Bool { get }
    /// Returns sightings stored before this start that may be heard again.
    func recentReadings() -> [Sighting]

    /// Takes each good fix, stored or not.
    func record(place fix: Fix)
    /// Takes a boot time and the GNSS receiver's time then; `isSettled` once it has run for so long
    /// that it must know the leap seconds.
    func record(time stamp: Stamp, isSettled: Bool)

    /// Returns an id for a new audio run.
    func newRunID() -> Int64
    /// Begins an audio run; then come its segments in order, then `end(run:)`.
    func begin(_ run: AudioRun)
    func end(run: Int64)
    /// Why audio is not accepted now; nil if it is.
    var soundRefusal: Failure? { get }
    /// Returns when the audio recorded before this start ended; nil if there is none, or if nothing
    /// is missing since then.
    func endOfAudio() -> Stamp?
    /// When the source was last stopped on purpose; nil if its last run ended otherwise.
    var stoppedAt: Stamp? { get }
    /// Returns the times in earlier windows of its schedule for which audio is missing and was not
    /// reported.
    func missedAudio() -> [DueTime]
    /// The time in which to record; it may change.
    var window: RecordingWindow { get }
}

/// The time in which a source records; nil means without that limit.
package struct RecordingWindow: Sendable, Equatable {
    /// The start of a window for which the device was opened before.
    package var opens: BootInstant?
    package var closes: BootInstant?

    package init(opens: BootInstant? = nil, closes: BootInstant? = nil) {
        (self.opens, self.closes) = (opens, closes)
    }
}

/// A time in which audio was due.
package struct DueTime: Sendable, Equatable {
    package var from: Stamp
    package var to: Stamp

    package init(from: Stamp, to: Stamp) {
        (self.from, self.to) = (from, to)
    }
}

extension RecordSink {
    package var stoppedAt: Stamp? { nil }
    package var tap: AdvertisementTap? { nil }
    package var soundTap: AudioTap? { nil }
    package func missedAudio() -> [DueTime] { [] }
    package var window: RecordingWindow { RecordingWindow() }
}
