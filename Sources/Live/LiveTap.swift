// The values that wait to be published: fed by the threads that accept records, emptied by one.
package import Host
package import Records
import Synchronization

/// One message to be published, not yet written as JSON.
package enum LiveMessage: Sendable {
    case beacon(LiveBeaconKey, LiveBeacon)
    case fix(Fix)
    case health(DeviceHealth)
    case record(UserRecord)
}

/// A bounded state between the threads that accept records and the one that publishes them.
///
/// `accept` never waits: a beacon's newer values replace older ones, but not its events. Where there
/// is no room the oldest or the new ones are dropped and counted. Without a connection nobody is
/// woken.
package final class LiveTap: Sendable {
    /// Signalled when something is due that the reader does not wait for already.
    package let wakeup: Wakeup
    private let content: Mutex<LiveValues>

    /// `isFiltered`: every beacon was named by a filter, and is established at once.
    package init(interval: Duration, isFiltered: Bool = false) throws {
        wakeup = try Wakeup()
        content = Mutex(LiveValues(interval: interval, isFiltered: isFiltered))
    }

    private func change(_ body: (inout LiveValues) -> Bool) {
        if content.withLock({ body(&$0) }) { wakeup.signal() }
    }

    package func accept(_ sighting: Sighting) { change { $0.add(sighting) } }
    package func accept(_ fix: Fix) { change { $0.add(fix) } }
    package func accept(_ health: DeviceHealth) { change { $0.add(health) } }
    package func accept(_ records: [UserRecord]) { change { $0.add(records) } }

    /// The number of messages that were dropped, including those that `drop` counted.
    package var dropped: Int { content.withLock { $0.dropped } }

    /// When a beacon last found no room; nil if that did not happen yet.
    var wasFull: BootInstant? { content.withLock { $0.wasFull } }

    /// Counts messages that were taken and not sent.
    package func drop(_ messages: Int) { content.withLock { $0.dropped += messages } }

    /// Sends the last values of a beacon again after an interval, except for events.
    ///
    /// Home Assistant subscribes to a topic only some seconds after it got its description.
    /// Returns when they are due; nil if newer ones wait.
    package func sendAgain(_ key: LiveBeaconKey) -> BootInstant? {
        content.withLock { $0.sendAgain(key) }
    }

    /// Makes the last values of each beacon due again, except for events: Home Assistant was
    /// restarted, or the broker was away.
    package func renew(at now: BootInstant) { content.withLock { $0.renew(at: now) } }

    /// Begins to wake the reader; values that have waited too long are dropped.
    package func open(at now: BootInstant) { content.withLock { $0.open(at: now) } }

    /// Stops waking the reader; values are collected on.
    package func close() { content.withLock { $0.isOpen = false } }

    /// Returns the messages that are due, at most `LiveValues.batch`, and when the next ones are.
    ///
    /// The caller must call again then at the latest: it is not woken for them.
    package func take(at now: BootInstant) -> (messages: [LiveMessage], next: BootInstant?) {
        content.withLock { $0.take(at: now) }
    }
}

/// The content of a `LiveTap`; a pure value.
struct LiveValues {
    /// Beacons that are followed at a time.
    static let beaconLimit = 512
    /// Records of user streams that wait, and their bytes.
    static let recordLimit = 256
    static let recordBytes = 128 << 10
    /// Messages per `receive`.
    static let batch = 64
    /// The last values of a beacon that was not heard for this long are not renewed.
    private static let absence = Duration.seconds(900)

    private let interval: Duration
    private let isFiltered: Bool
    private(set) var beacons: [LiveBeaconKey: LiveBeacon] = [:]
    private var fix: Fix?
    private var fixSent: BootInstant?
    private var health: DeviceHealth?
    private var records: [UserRecord] = []
    private var bytes = 0
    var dropped = 0
    private(set) var wasFull: BootInstant?
    var isOpen = false
    /// When the reader comes by itself; nil: only if it is woken.
    private var expected: BootInstant?

    init(interval: Duration, isFiltered: Bool = false) {
        (self.interval, self.isFiltered) = (interval, isFiltered)
    }

    // MARK: In. Each returns whether the reader has to be woken.

    mutating func add(_ sighting: Sighting) -> Bool {
        let (key, now) = (LiveBeaconKey(sighting.identity), sighting.stamp.boot)
        if var known = beacons.removeValue(forKey: key) {
            // Without a reader, each interval that passes is a message less.
            if let since = known.pendingSince, isLate(since, at: now) { dropped += known.clear() }
            dropped += known.add(sighting)
            beacons[key] = known
            return known.due(interval, at: now).map { wakes(for: $0, at: now) } ?? false
        }
        let isFull = beacons.count >= Self.beaconLimit
        guard makeRoom(at: now, for: key) else {
            dropped += 1
            wasFull = now
            return false
        }
        var beacon = LiveBeacon(sighting, isEstablished: isFiltered)
        // Addresses that are heard once each cannot make a message each.
        if isFull { beacon.sent = now }
        beacons[key] = beacon
        invariant(beacons.count <= Self.beaconLimit, "the beacons that are followed are bounded")
        return beacon.due(interval, at: now).map { wakes(for: $0, at: now) } ?? false
    }

    mutating func add(_ fix: Fix) -> Bool {
        if let waiting = self.fix, isLate(waiting.stamp.boot, at: fix.stamp.boot) { dropped += 1 }
        self.fix = fix
        return wakes(for: due(fixSent, fix.stamp.boot), at: fix.stamp.boot)
    }

    mutating func add(_ health: DeviceHealth) -> Bool {
        if self.health != nil { dropped += 1 }
        self.health = health
        return wakes(for: health.stamp.boot, at: health.stamp.boot)
    }

    mutating func add(_ new: [UserRecord]) -> Bool {
        records += new
        bytes += new.reduce(0) { $0 + $1.members.count }
        var excess = 0
        while records.count - excess > Self.recordLimit || bytes > Self.recordBytes {
            bytes -= records[excess].members.count
            excess += 1
        }
        records.removeFirst(excess)
        invariant(bytes >= 0 && (bytes == 0 || !records.isEmpty), "waiting bytes are of records")
        dropped += excess
        guard let last = new.last else { return false }
        return wakes(for: last.stamp.boot, at: last.stamp.boot)
    }

    /// Makes room for a new beacon: the least often heard one gives way, those whose address
    /// changes first.
    private mutating func makeRoom(at now: BootInstant, for key: LiveBeaconKey) -> Bool {
        guard beacons.count >= Self.beaconLimit else { return true }
        func rank(_ key: LiveBeaconKey, _ beacon: LiveBeacon) -> (Int, Int, BootInstant) {
            (key.isLasting ? 1 : 0, beacon.weight(at: now), beacon.stamp.boot)
        }
        guard let least = beacons.min(by: { rank($0.key, $0.value) < rank($1.key, $1.value) })
        else { return true }
        let isWeaker = !least.key.isLasting && key.isLasting
        let isSeldom = least.key.isLasting == key.isLasting && least.value.weight(at: now) <= 1
        guard isWeaker || isSeldom else { return false }
        if least.value.pendingSince != nil { (dropped, wasFull) = (dropped + 1, now) }
        beacons[least.key] = nil
        return true
    }

    /// Whether a value that was heard at `since` should have been sent long ago.
    private func isLate(_ since: BootInstant, at now: BootInstant) -> Bool {
        now - since >= interval * 2
    }

    private func due(_ sent: BootInstant?, _ now: BootInstant) -> BootInstant {
        sent.map { max(now, $0 + interval) } ?? now
    }

    private mutating func wakes(for due: BootInstant, at now: BootInstant) -> Bool {
        guard isOpen else { return false }
        if let expected, expected <= due || expected <= now { return false }
        expected = due
        return true
    }

    // MARK: Out

    mutating func open(at now: BootInstant) {
        isOpen = true
        expected = now
        let late = beacons.filter { _, beacon in
            beacon.pendingSince.map { isLate($0, at: now) } ?? false
        }
        for key in late.keys { dropped += beacons[key]?.clear() ?? 0 }
        // Home Assistant would take what happened in an outage for something of now.
        let old = records.prefix { isLate($0.stamp.boot, at: now) }
        bytes -= old.reduce(0) { $0 + $1.members.count }
        dropped += old.count
        records.removeFirst(old.count)
    }

    mutating func take(at now: BootInstant) -> (messages: [LiveMessage], next: BootInstant?) {
        var messages: [LiveMessage] = []
        if let health { messages.append(.health(health)) }
        health = nil
        if let fix, due(fixSent, now) <= now {
            messages.append(.fix(fix))
            (self.fix, fixSent) = (nil, now)
        }
        let taken = min(records.count, Self.batch - messages.count)
        messages += records.prefix(taken).map { .record($0) }
        bytes -= records.prefix(taken).reduce(0) { $0 + $1.members.count }
        records.removeFirst(taken)
        removeBeacons(at: now, into: &messages)
        expected = next(after: now)
        return (messages, expected)
    }

    mutating func sendAgain(_ key: LiveBeaconKey) -> BootInstant? {
        guard let known = beacons[key], let sent = known.sent, known.pendingSince == nil else {
            return nil
        }
        beacons[key]?.renew(at: sent)
        return sent + interval
    }

    mutating func renew(at now: BootInstant) {
        for (key, beacon) in beacons where now - beacon.stamp.boot < Self.absence {
            beacons[key]?.renew(at: now)
        }
    }

    private mutating func removeBeacons(at now: BootInstant, into messages: inout [LiveMessage]) {
        let room = Self.batch - messages.count
        // Collected first: a change while the table is walked would copy it.
        let ready = beacons.filter { $1.due(interval, at: now).map { $0 <= now } ?? false }
        for (key, beacon) in ready.prefix(room) {
            let expiry = beacon.identity.kind.expiry(interval)
            messages += (beacons[key]?.take(at: now, expiry: expiry) ?? []).map {
                .beacon(key, $0)
            }
        }
    }

    /// When something that waits is due; a whole second, so that many are sent at once.
    private func next(after now: BootInstant) -> BootInstant? {
        if !records.isEmpty { return now }
        var next = fix.map { _ in due(fixSent, now) }
        for beacon in beacons.values {
            guard let due = beacon.due(interval, at: now) else { continue }
            next = next.map { min($0, due) } ?? due
        }
        guard let next, next > now else { return next }
        let second: Int64 = 1_000_000_000
        return BootInstant(nanoseconds: (next.nanoseconds + second - 1) / second * second)
    }
}
