// The state of a device on the fleet page, and the reasons for that state.
import Host
package import ServerArchive
import ServerBase
package import ServerWeb

/// The states of a device, in ascending severity.
package enum DeviceLevel: Int, Comparable, CaseIterable {
    case revoked
    case healthy
    /// Enrolled just now, and not heard yet.
    case waiting
    case degraded
    case critical
    case late

    /// The displayed name, also its class in the style sheet.
    package var name: String { "\(self)" }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The time in which the receiver could have been contacted.
package struct ListeningTime: Sendable {
    /// The times when the receiver could not be contacted, in order: milliseconds since 1970.
    ///
    /// Before its start, while the machine was suspended, and forward steps of its clock.
    private var gaps: [(from: Int64, to: Int64)]
    /// The clock and the running time of the machine at the last check, in milliseconds.
    private var last: (wall: Int64, running: Int64)?

    private static let maxGaps = 16
    /// Milliseconds; a clock that is slewed to the right time differs by less between two checks.
    private static let step: Int64 = 60_000
    /// Milliseconds; a gateway retries after this time at the latest (waypost-protocol(7)).
    private static let longestWait: Int64 = 300_000

    /// `heardBefore`: the last contact with any device before the start, 0 if none.
    package init(start: Int64, heardBefore: Int64) { gaps = [(min(start, heardBefore), start)] }

    /// Detects a clock step since the last check; `running`: time without suspension.
    package mutating func look(at wall: Int64, running: Int64) {
        defer { last = (wall, running) }
        guard let last else { return }
        let expected = last.wall + running - last.running
        guard abs(wall - expected) > Self.step else { return }
        if gaps.count >= Self.maxGaps { gaps.removeFirst() }
        // After a clock set back, gaps in the future are cut, because that time comes again.
        gaps = gaps.map { (min($0.from, wall), min($0.to, wall)) }
        gaps.append((min(expected, wall), wall))
    }

    /// Returns the milliseconds that a device was silent while the receiver was listening.
    ///
    /// A contact in the future happened before the clock was set back.
    package func silence(since last: Int64, at now: Int64) -> Int64 {
        let last = last <= now ? last : min(now, gaps.last?.to ?? now)
        let missed = gaps.map { max(0, min($0.to, now) - max($0.from, last)) }
        return now - last - missed.reduce(0, +)
    }

    /// Returns whether a device has missed three intervals, and could have reported since the last
    /// gap.
    ///
    /// `interval`: seconds. After a stop of the receiver, gateways return within their longest
    /// retry wait, not within their interval.
    func isLate(since last: Int64, interval: Int64, at now: Int64) -> Bool {
        let limit = 3 * interval * 1000
        guard silence(since: last, at: now) > limit else { return false }
        guard let start = gaps.last?.to, last < start, silence(since: last, at: start) <= limit
        else { return true }
        return now - start > interval * 1000 + Self.longestWait
    }
}

/// A device on the fleet page: its data, its state and the reasons for that.
package struct DeviceView {
    package let id: String
    package let contact: Contact?
    package let token: DeviceToken?
    package let facts: DeviceFacts
    package let vitals: Vitals
    /// Its newest health record; nil if that is older than two of its intervals.
    package private(set) var health: ReportedHealth?
    package private(set) var level = DeviceLevel.healthy
    /// The reasons, worst first.
    package private(set) var reasons: [String] = []
    /// Each reason with its state.
    package private(set) var findings: [(level: DeviceLevel, reason: String)] = []
    /// Milliseconds without contact while the receiver was listening.
    package let silence: Int64
    private let listening: ListeningTime

    /// Seconds; the assumed interval until a device has shown its own (`upload.interval`).
    private static let usualInterval: Int64 = 300
    /// The maximum number of lost sources named; the rest are counted.
    private static let maxSources = 10
    /// Missing records are listed for a week after the last change, and are a problem after an hour
    /// without one.
    private static let missingHolds: Int64 = 7 * Day.milliseconds
    private static let missingStands: Int64 = 3_600_000
    /// Milliseconds that a warning stays valid; a gateway repeats it every hour.
    private static let warningHolds: Int64 = 2 * 3_600_000

    package init(
        _ id: String,
        contact: Contact?,
        token: DeviceToken?,
        facts: DeviceFacts,
        listening: ListeningTime,
        at now: Int64
    ) {
        (self.id, self.contact, self.token, self.facts) = (id, contact, token, facts)
        self.listening = listening
        vitals = Vitals(facts.latest)
        let last = contact?.lastSeen.milliseconds
        silence = last.map { listening.silence(since: $0, at: now) } ?? 0
        let fresh = 2 * max(interval, facts.healthInterval) * 1000
        health = facts.health.flatMap {
            listening.silence(since: $0.time, at: now) <= fresh ? $0 : nil
        }
        evaluate(at: now)
    }

    /// The usual seconds between its syncs: the third quartile of recent pauses, at least a minute.
    package var interval: Int64 { knownInterval ?? Self.usualInterval }

    /// The interval; nil until the device has shown it.
    package var knownInterval: Int64? {
        let pauses = (contact?.pauses ?? []).sorted()
        guard pauses.count >= 3 else { return nil }
        return max(60, pauses[pauses.count * 3 / 4])
    }

    package var lastSeen: Int64? { contact?.lastSeen.milliseconds }

    private mutating func evaluate(at now: Int64) {
        evaluateSilence(at: now)
        evaluateHealth()
        evaluateStorage(at: now)
        evaluateSources()
        if lost > 0 { record(.degraded, "\(Words.count(lost)) lost in the last day") }
        if vitals.supply?.isLow == true { record(.degraded, "supply is low") }
        evaluateMissing(at: now)
        if health == nil, contact?.clock == "unsynced" { record(.degraded, "its clock is not set") }
        if facts.isUnreadable {
            record(
                .degraded,
                "the index of this device is unreadable; run waypost-receiver index rebuild"
            )
        }
        if token?.revoked != nil {
            level = .revoked
            reasons = ["its token was revoked"]
        }
    }

    /// Adds a finding; a worse one goes first.
    private mutating func record(_ level: DeviceLevel, _ reason: String) {
        findings.append((level, reason))
        if level > self.level {
            self.level = level
            reasons.insert(reason, at: 0)
        } else {
            reasons.append(reason)
        }
    }

    /// Late after three of its own intervals.
    private mutating func evaluateSilence(at now: Int64) {
        guard let last = lastSeen else {
            // Either known since before contacts were recorded, or enrolled but not seen yet.
            guard contact == nil, let enrolled = token?.enrolled else { return }
            let isOverdue = now / 1000 - enrolled > 3 * Self.usualInterval
            return isOverdue
                ? record(.degraded, "enrolled but never heard from")
                : record(.waiting, "waiting for its first data")
        }
        guard listening.isLate(since: last, interval: interval, at: now) else { return }
        record(.late, "silent for \(Words.span(seconds: max(silence, now - last) / 1000))")
        let stopped = facts.state("stopped")
        if let stopped, facts.states.allSatisfy({ $0.time <= stopped.time }) {
            record(.late, "it was shut down cleanly")
        }
    }

    /// Adds the device's own verdict; events that are newer than it are judged, too.
    private mutating func evaluateHealth() {
        guard let health, health.level > .healthy else { return }
        for reason in health.reasons { record(health.level, reason) }
        guard health.reasons.isEmpty else { return }
        record(health.level, "it reports that it is \(health.level.name)")
    }

    private mutating func evaluateStorage(at now: Int64) {
        guard let low = facts.state("storage_low"), low.time > health?.time ?? .min,
            (lastSeen ?? now) - low.time < Self.warningHolds
        else { return }
        let detail = FlatRecord(low.detail)
        let isCritical = detail.text("level").map { $0 != "low" } ?? false
        record(
            isCritical ? .critical : .degraded,
            isCritical ? "no storage left" : "storage is low"
        )
    }

    /// Reports sources that are lost, and neither recovered nor restarted with the gateway since.
    ///
    /// The newest health record decides of what came before it. A device calls itself degraded
    /// without a source, so what came after is no more than that.
    private mutating func evaluateSources() {
        let started = facts.state("started")?.time ?? .min
        var recovered: [String: Int64] = [:]
        for event in facts.states where event.kind == "source_recovered" {
            recovered[event.source] = event.time
        }
        let lost = facts.states.filter {
            $0.kind == "source_lost" && $0.time > max(started, recovered[$0.source] ?? .min)
                && $0.time > health?.time ?? .min
        }.sorted { $0.source < $1.source }
        let level: DeviceLevel = health == nil ? .critical : .degraded
        for event in lost.prefix(Self.maxSources) {
            record(level, "\(event.source) has been lost since \(Words.minute(event.time))")
        }
        guard lost.count > Self.maxSources else { return }
        record(level, "\(lost.count - Self.maxSources) more sources are lost")
    }

    /// Reports gaps in its sequence numbers until the device has deleted what it had sent.
    ///
    /// A gap shows at once without changing the state, because a backlog may fill it. After an hour
    /// without change it makes the device degraded.
    private mutating func evaluateMissing(at now: Int64) {
        let missing =
            contact?.missing.filter {
                now - $0.changed.milliseconds < Self.missingHolds
            } ?? []
        guard let first = missing.map(\.since.milliseconds).min(),
            let last = missing.map(\.changed.milliseconds).max()
        else {
            return
        }
        let isStill = now - last > Self.missingStands
        let streams = missing.prefix(Self.maxSources).map {
            "\(Words.count($0.records)) of \($0.stream) (\($0.numbers.lowerBound) to \($0.numbers.upperBound))"
        }
        record(
            isStill ? .degraded : .healthy,
            "records are missing: \(streams.joined(separator: ", ")); if this server was restored, run on the device: "
                + "waypost resend --since \(WallTime(milliseconds: first).rfc3339)"
        )
    }

    /// The free storage that a stream reports, or else the newest storage event.
    package var freeStorage: Vitals.Reading? {
        if let said = vitals.freeStorage { return said }
        guard let low = facts.state("storage_low"),
            let free = FlatRecord(low.detail).number("free_bytes")
        else { return nil }
        return Vitals.Reading(text: "\(Words.bytes(free)) free", time: low.time)
    }

    /// The age in seconds of the newest record at the last contact; pending records are younger.
    package var behind: Int64? {
        guard let last = lastSeen, let newest = facts.latest.values.map(\.time).max() else {
            return nil
        }
        return max(0, (last - newest) / 1000)
    }
}

extension DeviceView {
    /// Sorts by severity, then by silence, then by the number of reasons.
    ///
    /// Sorts their places: a view is large to copy.
    package static func sorted(_ devices: [Self]) -> [Self] {
        let order = devices.map(\.order)
        return devices.indices.sorted { order[$0] < order[$1] }.map { devices[$0] }
    }

    private var order: (Int, Int64, Int, String) {
        (-level.rawValue, level == .late ? -silence : 0, -reasons.count, id)
    }
}
