// Watches the wall clock: whether it is synced, and whether it jumps.
import CLinux
import Host
import Queue
import Records
import Status
import StatusBoard

/// Stores pairs of boot time and wall time in the queue's clock map.
///
/// Stores a pair at the start, at each step, when the clock becomes synced, and every ten minutes.
/// An entry is synced only if the kernel vouches for the clock at that moment or, if it does not, a
/// GNSS receiver behind gpsd.
final class ClockMonitor: Sendable {
    /// The time between two entries.
    private static let pause = Duration.seconds(600)
    /// Publishes each change.
    let board = Publisher<ClockState>()
    private let queue: Queue
    private let clock: any HostClock
    private let vouches: @Sendable (_ stepped: WallTime?) -> Bool
    private let contradicted: @Sendable (ClockContradiction) -> Void
    private let known: StateBox<Known>
    private let wakeup: Wakeup

    fileprivate struct Known: Sendable {
        var state: ClockState
        /// Both clocks at the last check.
        var seen: Stamp
        var wasVouchedFor: Bool
        var steppedTo: WallTime?
        /// When the last entry was written; nil while one still has to be written.
        var notedAt: BootInstant?
        var anchor: ClockMap.Anchor?
        /// The database that the entry was written to.
        var generation: Int
        /// A GNSS receiver's time that still has to be stored, with its boot time.
        var receiver: ReceiverEvidence?
        /// The newest time of a GNSS receiver.
        var heard: Stamp?
        /// A settled GNSS receiver has given the time.
        var hasSettled = false
        var dispute = ClockDispute()
    }

    /// `contradicted` is called for each contradiction that is reported as an event.
    init(
        queue: Queue,
        clock: any HostClock,
        vouches: @escaping @Sendable (_ stepped: WallTime?) -> Bool =
            ClockEvidence.systemVouches(stepped:),
        contradicted: @escaping @Sendable (ClockContradiction) -> Void = { _ in }
    ) throws {
        self.queue = queue
        self.clock = clock
        self.contradicted = contradicted
        self.vouches = vouches
        wakeup = try Wakeup()
        let isVouchedFor = vouches(nil)
        let stamp = clock.steadyStamp()
        let isSynced = isVouchedFor && stamp.wall >= .release
        let generation = queue.generation
        // If the disk rejects the write, the entry is written later.
        let noted = try? queue.perform { writer in
            let before = writer.clockAnchor()
            try writer.recordClock(stamp, synced: isSynced)
            let isKnown = writer.clockSyncedThisBoot()
            return (isSynced: isKnown, anchor: writer.clockAnchor(), before: before)
        }
        known = StateBox(
            Known(
                state: ClockState(isSynced: noted?.isSynced ?? isSynced, steppedSeconds: 0),
                seen: stamp,
                wasVouchedFor: isSynced,
                notedAt: noted == nil ? nil : stamp.boot,
                anchor: noted?.anchor,
                generation: generation
            )
        )
        if isSynced { compare(stamp, by: .kernel, with: noted?.before) }
        board.loaded(current)
    }

    var current: ClockState { known.value.state }

    /// The newest time of a GNSS receiver, with its boot time.
    var heard: Stamp? { known.value.heard }

    /// Publishes the state again after the clock's thread has stopped hanging.
    func isBack() { board.loaded(current) }

    /// Asks the clock's thread for a check; never blocks.
    func check() { wakeup.signal() }

    /// Receives a GNSS receiver's time with its boot time; never blocks.
    ///
    /// Until it `isSettled` it may be 18 s ahead: weaker evidence than NTP's.
    func receiver(said stamp: Stamp, isSettled: Bool) {
        let evidence = ReceiverEvidence(stamp: stamp, isSettled: isSettled)
        let wantsLook = known.update { known in
            known.hasSettled = known.hasSettled || isSettled
            known.heard = stamp
            if known.wasVouchedFor { return known.evaluate(evidence) }
            guard known.isNews(evidence) else { return false }
            known.receiver = evidence
            // While the disk rejects writes, the next check is soon enough.
            return known.notedAt != nil
        }
        if wantsLook { wakeup.signal() }
    }

    /// Checks the clock at each step that the kernel reports and when asked; blocks until `stop`.
    func run(until stop: StopSignal) {
        while !stop.isRaised {
            // Armed before the check, so that no step in between is missed. Without a timer
            // (-errno, which poll ignores) steps are seen when somebody asks.
            let timer = Descriptor(owning: waypost_watch_clock_steps())
            // Storing an entry waits for the writer, which has a heartbeat of its own.
            stop.life.rests()
            look()
            var entries = [
                PollEntry(timer.number), PollEntry(wakeup.descriptor), PollEntry(stop.descriptor),
            ]
            while !entries[0].isReady, !stop.isRaised {
                _ = stop.wait(for: &entries)
                guard entries[1].isReady else { continue }
                wakeup.clear()
                stop.life.rests()
                look()
            }
        }
    }

    /// Checks the clocks once and stores the entries that are due; on one thread at a time.
    func look() {
        let before = current
        defer { if current != before { board.loaded(current) } }
        let wasVouchedFor = known.value.wasVouchedFor
        let steppedTo = known.value.steppedTo
        var isVouchedFor = vouches(steppedTo)
        let stamp = clock.steadyStamp()
        let step = known.update { $0.look(at: stamp) }
        if let step {
            queue.accept(
                Event(
                    .clockStep,
                    source: "clock",
                    detail: [("seconds", .number(step))],
                    stamp: stamp
                )
            )
        }
        // Read once more: somebody may have set the clock by hand after the kernel vouched for it.
        // The release date excludes an NTP server without a valid time, such as a router.
        isVouchedFor =
            isVouchedFor && stamp.wall >= .release && vouches(known.value.steppedTo)
        known.update { $0.wasVouchedFor = isVouchedFor }
        let last = known.value
        let isDue =
            last.notedAt.map { stamp.boot - $0 >= Self.pause } ?? true
            || last.generation != queue.generation
        if step != nil || isDue || isVouchedFor && !wasVouchedFor {
            record(stamp, synced: isVouchedFor, by: .kernel)
        }
        known.update { $0.settle(at: stamp.boot) }
        guard let receiver = known.update({ $0.useReceiver() }) else { return }
        guard isVouchedFor else {
            return record(receiver.stamp, synced: true, by: .gpsd, isSettled: receiver.isSettled)
        }
        if receiver.contradicts(last.seen) {
            report(
                ClockContradiction(
                    believed: .kernel,
                    time: stamp.wall,
                    other: .gpsd,
                    otherTime: receiver.stamp.wall(at: stamp.boot)
                ),
                at: stamp
            )
        }
    }

    /// Reports a stored time that contradicts the one before it in this boot.
    private func compare(_ stamp: Stamp, by source: ClockSource, with anchor: ClockMap.Anchor?) {
        guard let anchor else { return }
        let boottime = stamp.boot.milliseconds
        // Fixes come up to a second after their time.
        let delay: UInt64 = source == anchor.source ? 0 : 1000
        let limit = delay + ClockMap.tolerance(boottime &- anchor.boottime)
        guard anchor.deviation(of: stamp.wall.milliseconds, at: boottime) > limit else { return }
        report(
            ClockContradiction(
                believed: source,
                time: stamp.wall,
                other: anchor.source ?? .kernel,
                otherTime: anchor.stamp.wall(at: stamp.boot)
            ),
            at: clock.steadyStamp()
        )
    }

    private func report(_ contradiction: ClockContradiction, at now: Stamp) {
        let isNews = known.update { known in
            let isNews = known.dispute.record(contradiction, at: now.boot)
            known.state.contradiction = known.dispute.contradiction
            return isNews
        }
        guard isNews else { return }
        queue.accept(
            Event(.clockSynced, source: "clock", detail: contradiction.detail, stamp: now)
        )
        contradicted(contradiction)
    }

    /// Writes an entry; if that fails, the next check writes one.
    private func record(
        _ stamp: Stamp,
        synced: Bool,
        by source: ClockSource,
        isSettled: Bool = true
    ) {
        let isFirst = known.update { known in
            known.notedAt = nil
            defer { known.state.isSynced = known.state.isSynced || synced }
            return synced && !known.state.isSynced
        }
        if isFirst { reportSync(stamp, by: source, isSettled) }
        let generation = queue.generation
        let before = known.value.anchor
        if synced { compare(stamp, by: source, with: before) }
        // In an array, to tell a missing anchor from an error.
        let written = try? queue.perform { writer in
            // A new database that replaces a damaged one lacks the anchor of this boot's dates.
            if let before, writer.clockAnchor() == nil {
                try writer.recordClock(before.stamp, synced: true, by: before.source ?? .kernel)
            }
            try writer.recordClock(stamp, synced: synced, by: source)
            try writer.pruneClockMap()
            return [writer.clockAnchor()]
        }
        guard let written else { return }
        let now = clock.now()
        known.update { known in
            known.anchor = written[0]
            known.generation = generation
            known.notedAt = now
        }
    }

    private func reportSync(_ right: Stamp, by source: ClockSource, _ isSettled: Bool) {
        var detail: [(key: String, value: EventValue)] = [("by", .text(source.shortName))]
        let now = clock.steadyStamp()
        if source == .gpsd {
            let offset = right.wall(at: now.boot).milliseconds &- now.wall.milliseconds
            detail.append(("offset_s", .number(Double(offset) / 1000)))
            if !isSettled { detail.append(("leap_seconds", .text("unknown"))) }
        }
        queue.accept(Event(.clockSynced, source: "clock", detail: detail, stamp: now))
    }
}

extension ClockMonitor.Known {
    /// Compares both clocks with the last check; returns the seconds of a step, if there was one.
    fileprivate mutating func look(at stamp: Stamp) -> Double? {
        let passed = (stamp.boot - seen.boot).milliseconds
        let seconds =
            Double(stamp.wall.milliseconds &- seen.wall.milliseconds &- passed) / 1000
        // Differences below a tenth of a second are not a step yet; they add up.
        guard abs(seconds) >= 0.1 else { return nil }
        seen = stamp
        steppedTo = stamp.wall
        state.steppedSeconds += seconds
        return seconds
    }

    /// Whether a GNSS receiver's time dates this boot, or dates it better than the present anchor.
    fileprivate func isNews(_ evidence: ReceiverEvidence) -> Bool {
        guard let anchor else { return true }
        let (stamp, isNTP) = (evidence.stamp, anchor.source != .gpsd)
        guard evidence.isSettled || !isNTP && !hasSettled else { return false }
        // However old the NTP client's entry is: a board that runs by its crystal is minutes off
        // after months.
        if isNTP { return evidence.contradicts(anchor.stamp) }
        let distance = stamp.boot.milliseconds &- anchor.boottime
        return distance >= ClockMap.spacing
            || anchor.deviation(of: stamp.wall.milliseconds, at: stamp.boot.milliseconds)
                > ClockMap.tolerance(distance)
    }

    /// Evaluates a GNSS receiver's time while the kernel vouches for the clock.
    ///
    /// Returns true if the clock's thread has to check it.
    fileprivate mutating func evaluate(_ evidence: ReceiverEvidence) -> Bool {
        guard evidence.contradicts(seen) else {
            dispute.ends()
            return state.contradiction != nil
        }
        guard !dispute.isAbout(.kernel, .gpsd) else {
            dispute.goesOn(at: evidence.stamp.boot)
            return false
        }
        receiver = evidence
        return true
    }

    /// Clears a contradiction that is over or was not seen for long.
    fileprivate mutating func settle(at now: BootInstant) {
        dispute.check(at: now)
        state.contradiction = dispute.contradiction
    }

    fileprivate mutating func useReceiver() -> ReceiverEvidence? {
        defer { receiver = nil }
        return receiver
    }
}

/// A time that a GNSS receiver gave.
private struct ReceiverEvidence: Sendable {
    /// A boot time, and its time then.
    var stamp: Stamp
    /// It must know the leap seconds.
    var isSettled: Bool

    /// Whether its time and that of an NTP client, both in ms, cannot both be right.
    ///
    /// Its fixes come up to a second after their time. Without the leap seconds it is 18 s ahead.
    func contradicts(_ other: Stamp) -> Bool {
        let ahead = stamp.wall.milliseconds &- other.wall(at: stamp.boot).milliseconds
        return isSettled ? ahead > 1000 || ahead < -2000 : ahead.magnitude > 20_000
    }
}

extension ClockMap.Anchor {
    /// The anchor as boot time and the right wall time.
    fileprivate var stamp: Stamp {
        Stamp(
            boot: BootInstant(nanoseconds: boottime &* 1_000_000),
            wall: WallTime(milliseconds: wall)
        )
    }
}

extension HostClock {
    /// Reads both clocks at one moment: again if the thread was interrupted in between.
    fileprivate func steadyStamp() -> Stamp {
        var stamp = stamp()
        for _ in 0..<10 where now() - stamp.boot > .milliseconds(2) { stamp = self.stamp() }
        return stamp
    }
}
