// Asks for another version of the program, and reports what became of it.
package import Host
import Records

/// An upgrade from the server, as the gateway before and the one after it see it.
///
/// Root's unit installs the version, and goes back unless the new program declares itself good in
/// time. So this only asks for a version, observes itself if it is that version, and reads the
/// result. Used by the thread that does jobs.
package struct UpgradeTrial {
    /// Longer than root's unit takes, with the power cut in the middle.
    private static let patience = Duration.seconds(2400)

    private let device: any UpgradeDevice
    private let clock: any HostClock
    private var isRead = false
    private var stored: StoredUpgrade?
    private var gate: SettingsGate?
    /// When this process first saw the upgrade.
    private var since: BootInstant?
    private var observedAt: BootInstant?

    package init(_ device: any UpgradeDevice, _ clock: any HostClock) {
        (self.device, self.clock) = (device, clock)
    }

    /// The newest outcome, if there ever was one.
    var outcomes: [StoredOutcome] {
        [stored].compactMap { $0 }.map { stored in
            StoredOutcome(
                memo: "upgrade answered",
                job: stored.job,
                kind: "upgrade",
                outcome: JobOutcome(stored.state, stored.message, version: .program(stored.version))
            )
        }
    }

    /// The time until the next observation; nil if nothing is on trial.
    var pause: Duration? {
        guard let stored, stored.state == .trial else { return nil }
        return max(.seconds(1), .milliseconds(stored.before.intervalMs))
    }

    /// Asks root's unit for a version; it is on trial when this returns.
    ///
    /// Throws a `Failure` that says why it is refused. `key`: that of `remote.key`, without which
    /// no signature is asked for.
    mutating func begin(_ offer: UpgradeOffer, job: String, key: String?) throws {
        observe()
        if let stored, stored.state == .trial {
            throw Failure("the upgrade to \(stored.version) is not over")
        }
        if let obstacle = device.obstacle { throw Failure(obstacle) }
        let signed = offer.signedBytes(for: device.deviceID)
        try offer.signature.expect(of: signed, by: key, missing: "the upgrade has")
        let upgrade = StoredUpgrade(
            job: job,
            version: offer.version,
            before: device.before(),
            oldResult: device.result
        )
        // Stored first: a result without an upgrade would never be answered.
        try device.write(upgrade)
        (stored, since) = (upgrade, clock.now())
        do {
            try device.request(offer.version)
        } catch {
            end(.failed, "root's unit cannot be asked: \(error)")
        }
    }

    /// Reads the result; until there is one, observes this program if it is the one on trial.
    mutating func observe() {
        read()
        guard let stored, stored.state == .trial else { return }
        let now = clock.now()
        if let result = device.result.flatMap({ stored.result(in: $0) }) {
            return end(result.state, result.message)
        }
        if let since, now - since >= Self.patience {
            return end(.failed, "root's unit did not answer; see: journalctl -u waypost-upgrade")
        }
        since = since ?? now
        if device.version == UpgradeOffer.upstream(of: stored.version) { observe(stored, now) }
    }

    /// Observes this program, and declares it good when the gate says so.
    private mutating func observe(_ stored: StoredUpgrade, _ now: BootInstant) {
        guard let last = observedAt, let before = gate?.before else {
            (observedAt, gate) = (now, SettingsGate(before: newBefore(stored.before)))
            device.recordHealth(true)
            return device.upload()
        }
        // Each answer to an upload may wake the thread, and must not cause the next upload.
        guard now - last >= pause ?? .zero else { return }
        observedAt = now
        let observation = device.observe(since: last, before)
        if gate?.observe(observation) == .keep {
            do {
                try device.declareGood(stored.version)
            } catch {
                device.warn("\(stored.version) cannot be declared good: \(error)")
            }
        }
        device.upload()
    }

    /// Records that the old program made after the request say nothing about the new one.
    private func newBefore(_ before: SettingsGate.Before) -> SettingsGate.Before {
        var (before, newest) = (before, device.newest)
        newest = newest.filter { before.newest.keys.contains($0.key) }
        before.newest = newest
        return before
    }

    private mutating func read() {
        guard !isRead else { return }
        isRead = true
        do {
            stored = try device.read()
        } catch {
            device.warn("the last upgrade cannot be read, and is not answered: \(error)")
        }
    }

    private mutating func end(_ state: JobOutcome.State, _ message: String) {
        guard let ended = stored?.ended(state, message) else { return }
        do {
            try device.write(ended)
        } catch {
            return device.warn("the result of the upgrade cannot be stored: \(error)")
        }
        (stored, gate, since, observedAt) = (ended, nil, nil, nil)
        device.recordHealth(false)
    }
}
