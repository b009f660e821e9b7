// Puts settings from the server on trial, and ends the trial.
package import Host
import Records

/// The settings of a running gateway, used by the thread that does jobs.
///
/// The file is written before its outcome is answered, and a memo names the outcome that was
/// answered last. So a start after a kill at any point knows which answer is owed.
package struct SettingsTrial {
    /// The name of the memo.
    static let memo = "settings answered"
    /// The time between two observations.
    static let pause = Duration.seconds(30)
    /// The time in which uploads of the old settings end.
    private static let settling = Duration.seconds(10)
    /// The time between two writes of what a trial has observed, which may last for weeks.
    private static let writePause = Duration.seconds(600)

    private let device: any SettingsDevice
    private let clock: any HostClock
    /// The content of the file; nil while it cannot be read.
    private var stored: StoredSettings?
    private var observedAt: BootInstant?
    private var writtenAt: BootInstant?
    private var reloadedAt: BootInstant?

    package init(_ device: any SettingsDevice, _ clock: any HostClock) {
        (self.device, self.clock) = (device, clock)
    }

    /// The newest outcomes, the last one last.
    var outcomes: [StoredOutcome] {
        [stored?.earlier, stored?.outcome].compactMap { $0.flatMap(Self.outcome) }
    }

    private static func outcome(_ outcome: StoredSettings.Outcome) -> StoredOutcome? {
        guard let state = JobOutcome.State(rawValue: outcome.state)
        else { return nil }
        return StoredOutcome(
            memo: Self.memo,
            job: outcome.job,
            kind: "settings",
            outcome: JobOutcome(state, outcome.message, version: .settings(outcome.version))
        )
    }

    /// Whether it has to be observed: a version is on trial, or another one than the stored one is
    /// in force.
    var isOn: Bool {
        guard let stored else { return false }
        return stored.state == .trial || stored.current?.number != device.applied
    }

    /// Reads the file, which `waypost config remote --clear` may have changed.
    private mutating func refresh() {
        do {
            let now = try device.read()
            // The file lacks what was observed since it was written.
            if now.outcome != stored?.outcome || now.state != .trial { stored = now }
        } catch {
            device.warn("\(error)")
            stored = nil
        }
        device.publish(stored ?? StoredSettings())
    }

    /// Writes changed settings; they count only once they are on the disk.
    private mutating func write(_ changed: StoredSettings) throws {
        try device.write(changed)
        (stored, writtenAt) = (changed, clock.now())
        device.publish(changed)
    }

    // MARK: A new version

    /// Returns how the device is before the trial of a version.
    ///
    /// Throws a `Failure` that says why it is refused. `key`: that of `remote.key`, without which
    /// no signature is asked for.
    mutating func check(_ offer: SettingsOffer, key: String?) throws -> SettingsGate.Before {
        refresh()
        guard let stored else { throw Failure("the stored settings cannot be read") }
        guard offer.recipient == device.deviceID else {
            throw Failure("the settings are for \(offer.recipient), and this is \(device.deviceID)")
        }
        guard offer.version > stored.highest else {
            throw Failure(
                "version \(offer.version) is not newer than version \(stored.highest)"
            )
        }
        try offer.signature.expect(of: offer.signedBytes, by: key, missing: "the settings have")
        let now = try device.prepare(.init(number: offer.version, text: offer.text))
        // The way back leads past a version that is still on trial.
        guard var before = stored.gate?.before else { return now }
        before.judgesUploads = before.judgesUploads || now.judgesUploads
        before.newIntervalMs = now.newIntervalMs
        return before
    }

    /// Ends a trial, if there is one, because another version follows.
    mutating func makeWay(for offer: SettingsOffer) throws {
        guard var changed = stored, changed.state == .trial else { return }
        changed.rollBack("version \(offer.version) replaced it")
        try write(changed)
        reload()
    }

    /// Puts a version on trial.
    mutating func begin(
        _ offer: SettingsOffer,
        job: String,
        _ before: SettingsGate.Before,
        at time: WallTime
    ) throws {
        guard var changed = stored else { throw Failure("the stored settings cannot be read") }
        var version = StoredSettings.Version(number: offer.version, text: offer.text)
        version.job = job
        changed.begin(version, SettingsGate(before: before), at: time)
        try write(changed)
        (observedAt, reloadedAt) = (nil, nil)
        reload()
    }

    // MARK: Observation

    /// Observes a trial, and ends it if that decides it.
    mutating func observe() {
        refresh()
        guard let old = stored else { return }
        // The gateway's own file may have errors: what was asked for is not in force then.
        guard old.current?.number == device.applied else {
            observedAt = nil
            return reload()
        }
        reloadedAt = nil
        guard old.state == .trial, let before = old.gate?.before else { return }
        let time = clock.now()
        guard let since = observedAt else {
            observedAt = time + Self.settling
            return
        }
        var now = old
        var observation = device.observe(since: since, before, began: old.trialSince)
        // A job may have taken longer, or the machine was suspended.
        observation.passed = min(observation.passed, Self.pause * 2)
        now.observe(observation)
        observedAt = max(since, time)
        store(now, after: old, at: time)
    }

    /// Asks for a reload, and again only after a while: it may fail for a long time.
    private mutating func reload() {
        let now = clock.now()
        if let reloadedAt, now - reloadedAt < Self.writePause { return }
        reloadedAt = now
        device.reload()
    }

    private mutating func store(
        _ now: StoredSettings,
        after old: StoredSettings,
        at time: BootInstant
    ) {
        let isDue = writtenAt.map { time - $0 >= Self.writePause } ?? true
        guard now.outcome != old.outcome || now.gate?.accepted != old.gate?.accepted || isDue else {
            stored = now
            return
        }
        do {
            try write(now)
        } catch {
            return device.warn("the trial of the settings cannot be stored: \(error)")
        }
        if now.state != .trial { reload() }
    }
}
