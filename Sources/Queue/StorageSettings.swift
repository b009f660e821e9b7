// The configuration of the stored queue.
package import Configuration

/// `[storage]`: commits, retention, and limits on space.
package struct StorageSettings: Configurable {
    package var commitInterval = Duration.seconds(1)
    /// How long records stay after their upload.
    package var retention = Duration.days(3)
    /// nil: what the file system has room for.
    package var maxSize: Int64?
    /// The limits of free space; `limits(total:)` has all of them.
    package var limits = StorageLimits()

    package init() {}

    /// The limits on a file system with `total` bytes; nil if that is unknown.
    package func limits(total: Int64?) -> StorageLimits {
        var limits = limits
        limits.maxSize = maxSize ?? StorageLimits.automaticSize(total: total)
        return limits
    }

    package static var keys: [Key<Self>] {
        Key("commit_interval", \.commitInterval, .duration(.milliseconds(10) ... .seconds(60)))
            .says("Time from one commit to the next: the most that a power cut can cost.")
        Key("retention", \.retention, .duration(.zero ... .days(3650)))
            .says("How long data stays on the device after its upload.")
        Key("max_size", \.maxSize, .automaticSize(1_000_000...1_000_000_000_000))
            .says("Most that the database and its journal may take; auto: half of the file system.")
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
