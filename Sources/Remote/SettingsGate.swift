// Decides whether settings on trial are kept or rolled back.
import Host

/// The trial of a version of settings from the server.
///
/// A pure value: it has no clock and no thread. The caller reports each start of the program, and
/// while it runs what has happened since the last report.
package struct SettingsGate: Codable, Sendable, Equatable {
    /// How the device was before the trial.
    package struct Before: Codable, Sendable, Equatable {
        /// The sources that collected, or were off by their schedule.
        package var healthy: [String]
        /// The number of the newest record of each source that had one a short time before.
        package var newest: [String: Int64]
        /// The interval of uploads, and that of the version, in milliseconds.
        package var intervalMs: Int64
        package var newIntervalMs: Int64
        /// `upload.quiet` as text, and `upload.daily_budget`; nil: not set.
        package var quiet: String?
        package var budget: Int64?
        /// The version changes `[upload]`: it may be rolled back because nothing is accepted.
        package var judgesUploads: Bool

        package init(
            healthy: [String],
            newest: [String: Int64] = [:],
            intervalMs: Int64,
            newIntervalMs: Int64,
            quiet: String? = nil,
            budget: Int64? = nil,
            judgesUploads: Bool
        ) {
            (self.healthy, self.newest, self.quiet) = (healthy, newest, quiet)
            (self.intervalMs, self.newIntervalMs) = (intervalMs, newIntervalMs)
            (self.budget, self.judgesUploads) = (budget, judgesUploads)
        }
    }

    /// The activity of a source.
    package enum Condition: Sendable, Equatable {
        case collects
        /// Off by its schedule.
        case isNotDue
        /// Switched off by the configuration.
        case isOff
        case fails(String)
    }

    /// The events since the last observation.
    package struct Observation: Sendable, Equatable {
        package var passed: Duration
        /// An upload was accepted.
        package var isAccepted = false
        /// The settings are not the cause when nothing is accepted: nothing waits, the server or the
        /// network is down, or quiet hours or a budget that may be so hold uploads up.
        package var isExcused = false
        /// By source.
        package var sources: [String: Condition] = [:]
        /// The number of the newest record of each source.
        package var newest: [String: Int64] = [:]

        package init(passed: Duration) { self.passed = passed }
    }

    package enum Verdict: Sendable, Equatable {
        case undecided
        case keep
        case rollBack(String)
    }

    private static let acceptedUploads = 2
    private static let mostStarts = 2
    private static let patienceMs: Int64 = 600_000
    private static let leastUploadMs: Int64 = 3_600_000
    /// The time in which a source that had records has none.
    private static let silenceMs: Int64 = 3_600_000

    /// The state of a source in the trial.
    private struct Record: Codable, Sendable, Equatable {
        /// For how long it has failed, while it was due and without collecting in between.
        var failsMs: Int64 = 0
        /// For how long it has collected.
        var collectsMs: Int64 = 0
        var hasRecords = false
    }

    package let before: Before
    private(set) var accepted = 0
    private var starts = 0
    /// The time since the last start, up to `patienceMs`.
    private var runsMs: Int64 = 0
    /// The time without an accepted upload, as far as the settings may be the cause.
    private var deafMs: Int64 = 0
    /// The time since the last upload that counted.
    private var sinceMs: Int64 = 0
    private var sources: [String: Record] = [:]

    package init(before: Before) { self.before = before }

    /// The time without an accepted upload after which the version is rolled back.
    private var uploadMs: Int64 { max(before.intervalMs &* 3, Self.leastUploadMs) }

    /// Records a start of the program during the trial.
    package mutating func start() -> Verdict {
        starts += 1
        runsMs = 0
        return starts < Self.mostStarts
            ? .undecided
            : .rollBack("the gateway was started \(starts) times within 10 minutes each")
    }

    /// Records what happened.
    package mutating func observe(_ observation: Observation) -> Verdict {
        let passed = max(0, observation.passed.milliseconds)
        // A start that the program has survived says nothing.
        runsMs = min(runsMs + passed, Self.patienceMs)
        if runsMs == Self.patienceMs { starts = 0 }
        count(observation, passed)
        for name in before.healthy { look(at: name, observation, passed) }
        if let failure = failure(observation) { return .rollBack(failure) }
        if before.judgesUploads, deafMs >= uploadMs {
            return .rollBack("no upload was accepted for \(deafMs / 60_000) minutes")
        }
        let areWell = before.healthy.allSatisfy { isWell($0, observation.sources[$0]) }
        return accepted >= Self.acceptedUploads && areWell ? .keep : .undecided
    }

    /// Counts uploads that are as far apart as those of a timer: replies and backlogs come at once.
    private mutating func count(_ observation: Observation, _ passed: Int64) {
        sinceMs += passed
        if observation.isAccepted {
            deafMs = 0
            guard accepted == 0 || sinceMs >= max(before.intervalMs, before.newIntervalMs) / 2
            else { return }
            accepted += 1
            sinceMs = 0
        } else if !observation.isExcused {
            deafMs += passed
        }
    }

    private mutating func look(at name: String, _ observation: Observation, _ passed: Int64) {
        var record = sources[name] ?? Record()
        record.hasRecords =
            record.hasRecords || observation.newest[name] != before.newest[name]
        switch observation.sources[name] {
        case .collects?:
            record.failsMs = 0
            record.collectsMs += max(1, passed)
        case .fails?: record.failsMs += passed
        case .isNotDue?, .isOff?, nil: break
        }
        sources[name] = record
    }

    private func failure(_ observation: Observation) -> String? {
        for name in before.healthy {
            guard let record = sources[name], observation.sources[name] != .isOff else { continue }
            if record.failsMs >= Self.patienceMs, case .fails(let why)? = observation.sources[name]
            {
                return "\(name) did not collect for 10 minutes: \(why)"
            }
            if before.newest[name] != nil, !record.hasRecords, record.collectsMs >= Self.silenceMs {
                return "\(name) had records before, and none for an hour"
            }
        }
        return nil
    }

    /// Whether a source has collected in the trial, with records if it had some before.
    private func isWell(_ name: String, _ condition: Condition?) -> Bool {
        if condition == .isOff { return true }
        if case .fails? = condition { return false }
        guard let record = sources[name], record.collectsMs > 0 else { return false }
        return record.hasRecords || before.newest[name] == nil
    }
}
