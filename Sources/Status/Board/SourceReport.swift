// The state and counters that a source publishes.
package import Host

/// The state of a source and its counters since it was started.
package struct SourceReport: Sendable, Equatable {
    /// The device in use: `hci0`, `plughw:CARD=Mic`, `localhost:2947 /dev/ttyACM0`.
    package var device: String
    /// One phrase about what the source does now: `passive scan, extended`, `3D fix, 9 satellites`.
    package var detail: String
    /// A problem that does not stop the source: the audio clips, a device is too slow for its
    /// settings.
    package var concern: String?
    /// Records admitted into the queue.
    package var records = 0
    /// Readings received but lost (overrun, no room).
    package var dropped = 0
    /// How often the source restarted itself.
    package var restarts = 0
    /// How often the device's buffer overran (ALSA).
    package var overruns = 0
    package var firstRecordAt: Stamp?
    package var lastRecordAt: Stamp?
    /// Records per second over the last minute.
    package var ratePerSecond = 0.0

    package init(device: String, detail: String = "") {
        (self.device, self.detail) = (device, detail)
    }

    /// Returns this report plus the counters of an earlier run of the source.
    package func added(to earlier: Self?) -> Self {
        guard let earlier else { return self }
        var sum = self
        sum.records += earlier.records
        sum.dropped += earlier.dropped
        sum.restarts += earlier.restarts
        sum.overruns += earlier.overruns
        sum.firstRecordAt = earlier.firstRecordAt ?? firstRecordAt
        sum.lastRecordAt = lastRecordAt ?? earlier.lastRecordAt
        return sum
    }
}
