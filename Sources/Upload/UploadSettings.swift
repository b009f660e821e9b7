// What a sync needs to know.

/// How uploads are done, wherever they go.
package struct UploadSettings: Sendable {
    /// Of a body before compression.
    package var maxBatchBytes: Int
    /// Verdicts against a record that stands alone in its batch, each in a sync of its own, before it is
    /// quarantined.
    package var maxAttempts: Int
    /// How long after boot uploads wait for the clock's first sync.
    package var clockPatience: Duration
    /// Of the grid whose ticks call for syncs.
    package var interval: Duration
    /// While a backlog is sent, the newest records go in between this often.
    package var liveInterval: Duration
    /// Where to call after a sync that left nothing; nil: nowhere.
    package var heartbeat: TransportSettings?

    package init(
        maxBatchBytes: Int = 8 << 20,
        maxAttempts: Int = 5,
        clockPatience: Duration = .seconds(120),
        interval: Duration = .seconds(300),
        liveInterval: Duration = .seconds(60)
    ) {
        self.maxBatchBytes = maxBatchBytes
        self.maxAttempts = maxAttempts
        self.clockPatience = clockPatience
        self.interval = interval
        self.liveInterval = liveInterval
    }
}
