// The configuration of the stored queue.
package import Configuration

/// `[storage]`: commits, retention, and limits on space.
package struct StorageSettings: Configurable {
    package var commitInterval = Duration.seconds(1)
    /// How long records stay after their upload.
    package var retention = Duration.days(3)
    package var limits = StorageLimits()

    package init() {}

    package static var keys: [Key<Self>] {
        Key("commit_interval", \.commitInterval, .duration(.milliseconds(10) ... .seconds(60)))
            .says("Time from one commit to the next: the most that a power cut can cost.")
        Key("retention", \.retention, .duration(.zero ... .days(3650)))
            .says("How long data stays on the device after its upload.")
        Key("max_size", \.limits.maxSize, .size(1_000_000...1_000_000_000_000))
            .says("Most that the database and its journal may take.")
        Key("warn_free", \.limits.warnFree, .size(0...1_000_000_000_000))
            .says("With less free space than this the status is degraded.")
        Key("critical_free", \.limits.criticalFree, .size(0...1_000_000_000_000))
            .says("Below this free space audio stops, below 4 MiB everything; at most warn_free.")
    }

    package var violations: [Violation] {
        guard limits.criticalFree > limits.warnFree else { return [] }
        let (critical, warn) = (sizeText(limits.criticalFree), sizeText(limits.warnFree))
        return [
            Violation(
                ["critical_free", "warn_free"],
                "critical_free of \(critical) is more than warn_free of \(warn)",
                allowed: "critical_free up to warn_free"
            )
        ]
    }
}
