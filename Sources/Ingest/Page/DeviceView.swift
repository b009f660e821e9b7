// A device as the page shows it: whether it needs a person, and why.
import Host

/// The states of a device, the worse the greater.
enum DeviceLevel: Int, Comparable, CaseIterable {
    case revoked
    case healthy
    case degraded
    case critical
    case late

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// When the receiver could have heard somebody.
struct ListeningTime: Sendable {
    /// Its start, milliseconds since 1970.
    var start: Int64
    /// When it last heard anybody before that; 0: never.
    var heardBefore: Int64

    /// Milliseconds in which a device was silent and the receiver there.
    func silence(since last: Int64, at now: Int64) -> Int64 {
        guard last < start else { return max(0, now - last) }
        return max(0, now - start) + silenceBefore(last)
    }

    /// Of that, what was before the start.
    private func silenceBefore(_ last: Int64) -> Int64 { max(0, heardBefore - last) }

    /// Whether a device that comes in an interval has missed three, and could have come since the start.
    ///
    /// `interval`: seconds. After a stop gateways come back within their longest wait, not within their interval.
    func isLate(since last: Int64, interval: Int64, at now: Int64) -> Bool {
        let limit = 3 * interval * 1000
        guard last < start, silenceBefore(last) <= limit else {
            return silence(since: last, at: now) > limit
        }
        let mayCome = now - start > interval * 1000 + Self.longestWait
        return mayCome && silence(since: last, at: now) > limit
    }

    /// Of a gateway before it tries again, in milliseconds (waypost-protocol(7)).
    private static let longestWait: Int64 = 300_000
}

struct DeviceView {
    let id: String
    let contact: Contact?
    let token: DeviceToken?
    let facts: DeviceFacts
    let vitals: Vitals
    private(set) var level = DeviceLevel.healthy
    /// Why, the worst first.
    private(set) var reasons: [String] = []
    /// Each with the state that it stands for.
    private(set) var findings: [(level: DeviceLevel, reason: String)] = []
    /// Milliseconds without a word while the receiver was there.
    let silence: Int64
    private let listening: ListeningTime

    /// A device comes in this interval as long as it has not shown its own (`upload.interval`).
    private static let usualInterval: Int64 = 300
    /// A warning that a gateway repeats each hour holds so long, in milliseconds.
    private static let warningHolds: Int64 = 2 * 3_600_000

    init(
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
        let last = contact?.lastSeen?.milliseconds
        silence = last.map { listening.silence(since: $0, at: now) } ?? 0
        judge(at: now)
    }

    /// Seconds between its syncs: what three of four of the last ones kept; at least a minute.
    var interval: Int64 {
        let pauses = (contact?.pauses ?? []).sorted()
        guard pauses.count >= 3 else { return Self.usualInterval }
        return max(60, pauses[pauses.count * 3 / 4])
    }

    var lastSeen: Int64? { contact?.lastSeen?.milliseconds }

    private mutating func judge(at now: Int64) {
        judgeSilence(at: now)
        judgeStorage(at: now)
        for source in Set(facts.states.filter { $0.kind == "source_lost" }.map(\.source)).sorted() {
            judge(source: source)
        }
        if facts.lost > 0 { note(.degraded, "\(Words.count(facts.lost)) lost in the last day") }
        if vitals.supply?.isLow == true { note(.degraded, "supply is low") }
        if contact?.clock == "unsynced" { note(.degraded, "its clock is not set") }
        if token?.revoked != nil {
            level = .revoked
            reasons = ["its token was revoked"]
        }
    }

    /// A worse state stands before what was found already.
    private mutating func note(_ level: DeviceLevel, _ reason: String) {
        findings.append((level, reason))
        if level > self.level {
            self.level = level
            reasons.insert(reason, at: 0)
        } else {
            reasons.append(reason)
        }
    }

    /// Late after three of its own intervals.
    private mutating func judgeSilence(at now: Int64) {
        guard let last = lastSeen else {
            // From before contacts were noted, or enrolled and not heard yet.
            guard contact == nil, let enrolled = token?.enrolled else { return }
            if now / 1000 - enrolled > 3 * Self.usualInterval {
                note(.degraded, "enrolled, and never heard")
            }
            return
        }
        guard listening.isLate(since: last, interval: interval, at: now) else { return }
        note(.late, "silent for \(Words.span(seconds: (now - last) / 1000))")
        let stopped = facts.state("stopped")
        if let stopped, facts.states.allSatisfy({ $0.time <= stopped.time }) {
            note(.late, "it was stopped in order")
        }
    }

    private mutating func judgeStorage(at now: Int64) {
        guard let low = facts.state("storage_low"), (lastSeen ?? now) - low.time < Self.warningHolds
        else { return }
        let detail = FlatRecord(low.detail)
        let isCritical = detail.text("level").map { $0 != "low" } ?? false
        note(isCritical ? .critical : .degraded, isCritical ? "no storage left" : "storage is low")
    }

    /// Lost, and neither back nor the gateway started since.
    private mutating func judge(source: String) {
        guard let lost = facts.state("source_lost", source) else { return }
        let back = [facts.state("source_recovered", source), facts.state("started")]
        guard back.allSatisfy({ $0.map { $0.time < lost.time } ?? true }) else { return }
        note(.critical, "\(source) is lost since \(Words.minute(lost.time))")
    }

    /// The newest event that tells of storage, where no stream does.
    var freeStorage: Vitals.Reading? {
        if let said = vitals.freeStorage { return said }
        guard let low = facts.state("storage_low"),
            let free = FlatRecord(low.detail).number("free_bytes")
        else { return nil }
        return Vitals.Reading(text: "\(Words.bytes(free)) free", time: low.time)
    }

    /// How old, in seconds, the newest record was when the device was last heard: what waits is younger than that.
    var behind: Int64? {
        guard let last = lastSeen, let newest = facts.latest.values.map(\.time).max() else {
            return nil
        }
        return max(0, (last - newest) / 1000)
    }
}

extension DeviceView {
    /// Who needs a person first; then who has been silent longest.
    static func isBefore(_ left: Self, _ right: Self) -> Bool {
        if left.level != right.level { return left.level > right.level }
        if left.level == .late, left.silence != right.silence {
            return left.silence > right.silence
        }
        if left.reasons.count != right.reasons.count {
            return left.reasons.count > right.reasons.count
        }
        return left.id < right.id
    }
}
