// The trial of settings from the server, on a running gateway.
import Configuration
import Host
import Queue
import Records
import Remote
import Setup
import Status
import StatusBoard
import Upload

/// Checks, applies and observes settings from the server.
struct GatewaySettingsDevice: SettingsDevice {
    /// A schedule that opens no more within this many days is refused.
    private static let days = 8
    private static let leastInterval = Duration.seconds(10)
    /// A report alone may have this many bytes.
    private static let leastBudget: Int64 = 100_000
    /// The most problems of a refused text that its answer names.
    private static let problems = 5

    let context: ServiceContext
    let services: Services
    let wantsReload: Wakeup
    /// Where the file of stored settings is.
    let directory: String
    /// Reads the configuration with a version above it; throws its errors.
    let trying: @Sendable (StoredSettings.Version) throws -> Configuration

    var deviceID: String { context.deviceID }
    var applied: Int64? { services.configuration.settingsVersion }

    func read() throws -> StoredSettings { try StoredSettings.read(in: directory) }
    func write(_ stored: StoredSettings) throws { try stored.write(in: directory) }
    func reload() { wantsReload.signal() }

    func warn(_ what: String) { context.log.warning("settings", ["why": what]) }

    func publish(_ stored: StoredSettings) {
        context.board.remote.update { remote in
            remote.settingsVersion = stored.current?.number
            remote.settingsState = stored.state.rawValue
            remote.trialSince = stored.trialSince
            remote.refusedVersion = stored.refused
        }
    }

    func prepare(_ version: StoredSettings.Version) throws -> SettingsGate.Before {
        let new = try read(version)
        let now = services.configuration
        if let why = refusal(of: new, now) { throw Failure(why) }
        let healthy = SourceName.allCases.filter { name in
            context.board.resting.value[name] == nil
                && (context.board.schedule.state.value?.off[name] != nil
                    || context.board.sources[name]?.state.isLoaded == true)
        }
        let active = healthy.filter { isActive($0, within: .seconds(600)) }
        return SettingsGate.Before(
            healthy: healthy.map(\.rawValue),
            newest: newest.filter { name, _ in active.contains { $0.rawValue == name } },
            intervalMs: now.upload.interval.milliseconds,
            newIntervalMs: new.upload.interval.milliseconds,
            quiet: now.upload.quiet?.text,
            budget: now.upload.dailyBudget,
            judgesUploads: new.upload != now.upload
        )
    }

    /// Reads the configuration with a version; of the errors the server sees only those of its text.
    private func read(_ version: StoredSettings.Version) throws -> Configuration {
        do {
            return try trying(version)
        } catch let errors as ConfigurationErrors {
            let own = errors.problems.map(\.description)
                .filter { $0.hasPrefix("settings \(version.number)") }
            throw Failure(
                own.isEmpty
                    ? "the configuration on the device has errors; ask for a report"
                    : own.prefix(Self.problems).joined(separator: "; ")
            )
        }
    }

    /// Returns why valid settings are refused without a trial; nil if they are not.
    private func refusal(of new: Configuration, _ now: Configuration) -> String? {
        if let name = context.schedule.closed(new.schedules, days: Self.days).first {
            return "\(name.rawValue).schedule does not open within \(Self.days) days; "
                + "\(name.rawValue).enabled = false switches it off"
        }
        if let quiet = new.upload.quiet, quiet.open < .seconds(3600) {
            return "upload.quiet leaves less than an hour of each day"
        }
        if let budget = new.upload.dailyBudget,
            budget < min(now.upload.dailyBudget ?? .max, Self.leastBudget)
        {
            return "upload.daily_budget from a server is at least \(Self.leastBudget / 1000)kB"
        }
        if new.upload.interval < min(now.upload.interval, Self.leastInterval) {
            return "upload.interval from a server is at least \(durationText(Self.leastInterval))"
        }
        return nil
    }

    /// Whether a source had a record a short time ago.
    func isActive(_ name: SourceName, within time: Duration) -> Bool {
        guard let last = context.board.sources[name]?.state.value?.lastRecordAt else {
            return false
        }
        return context.clock.now() - last.boot < time
    }

    /// The number of the newest record of each source.
    var newest: [String: Int64] {
        SourceName.allCases.reduce(into: [:]) { $0[$1.rawValue] = context.queue.newest($1.stream) }
    }

    func observe(
        since: BootInstant,
        _ before: SettingsGate.Before,
        began: WallTime?
    ) -> SettingsGate.Observation {
        let now = context.clock.stamp()
        var observation = SettingsGate.Observation(passed: now.boot - since)
        let upload = context.board.upload.state
        observation.isAccepted = upload.value?.lastSuccessAt.map { $0.boot > since } ?? false
        observation.isExcused = isExcused(upload.value, before, now, began)
        observation.newest = newest
        for name in SourceName.allCases { observation.sources[name.rawValue] = condition(name) }
        return observation
    }

    func condition(_ name: SourceName) -> SettingsGate.Condition {
        if context.board.resting.value[name] != nil { return .isOff }
        if context.board.schedule.state.value?.off[name] != nil { return .isNotDue }
        switch context.board.sources[name]?.state {
        case .loaded: return .collects
        case .error(let failure, _): return .fails(failure.message)
        default: return .fails("it does not start")
        }
    }

    /// Whether the settings are not the cause when nothing is accepted now.
    private func isExcused(
        _ upload: UploadReport?,
        _ before: SettingsGate.Before,
        _ now: Stamp,
        _ began: WallTime?
    ) -> Bool {
        guard let upload else { return true }
        let wall = context.queue.rightTime(at: now) ?? now.wall
        if let quiet = before.quiet.flatMap({ QuietHours($0) }), quiet.left(at: wall) != nil {
            return true
        }
        switch upload.phase {
        case .waitingForClock, .tokenRefused, .endpointWrong, .noEndpoint, .quietHours: return true
        // One that was lowered below what the day has cost ends with the day (UTC).
        case .waitingForBudget
        where services.configuration.upload.dailyBudget == before.budget
            || wall.utcDay == began?.utcDay:
            return true
        default: break
        }
        if context.queue.streams.streams.allSatisfy({ context.queue.pending($0) == nil }) {
            return true
        }
        // Settings from the server cannot change where to upload.
        let span = max(Duration.milliseconds(before.intervalMs) * 2, .seconds(900))
        return upload.streams.values.compactMap(\.lastError).contains { error in
            [.network, .server].contains(error.failure.code) && now.boot - error.at.boot < span
        }
    }
}

extension BoardState {
    fileprivate var isLoaded: Bool { if case .loaded = self { true } else { false } }
}
