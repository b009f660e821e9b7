// Watching the wall clock: is it synced, and does it jump.
internal import CLinux
internal import Glibc
internal import Host
internal import Store

/// What is known of the wall clock in this boot.
package struct ClockState: Sendable, Equatable {
    package var isSynced: Bool
    /// Seconds that the clock was stepped by since the start, all steps together.
    package var steppedSeconds: Double
}

/// Notes both clocks in the queue at the start, at each step, at the first sync and every ten minutes.
final class ClockWatch: Sendable {
    private let queue: Queue
    private let clock: any HostClock
    private let state: StateBox<ClockState>

    /// Evidence for the clock being right: a bound on its error below 16 s, as systemd-timedated has it.
    static func isSyncedByKernel() -> Bool {
        let bound = waypost_clock_maxerror()
        if bound >= 0 { return bound < 16_000_000 }
        // adjtimex may be forbidden by a sandbox; systemd-timesyncd leaves a mark.
        return access("/run/systemd/timesync/synchronized", F_OK) == 0
    }

    init(queue: Queue, clock: any HostClock) throws {
        self.queue = queue
        self.clock = clock
        let isSynced = Self.isSyncedByKernel()
        let stamp = clock.stamp()
        let already = try queue.perform { writer in
            try writer.noteClock(stamp, synced: isSynced)
            return writer.clockSyncedThisBoot()
        }
        state = StateBox(ClockState(isSynced: already, steppedSeconds: 0))
    }

    var current: ClockState { state.value }

    /// Called by the health timer: the first sync is noted once a boot.
    func check() {
        guard !state.value.isSynced, Self.isSyncedByKernel() else { return }
        markSynced(by: "ntp")
    }

    private func markSynced(by evidence: String) {
        state.update { $0.isSynced = true }
        let stamp = clock.stamp()
        try? queue.perform { try $0.noteClock(stamp, synced: true) }
        queue.accept(
            Event(.clockSynced, source: "clock", detail: [("by", .text(evidence))], stamp: stamp)
        )
    }

    /// Every ten minutes, so that the wall clock of any moment can be told later.
    func note() {
        let stamp = clock.stamp()
        let isSynced = state.value.isSynced
        try? queue.perform { try $0.noteClock(stamp, synced: isSynced) }
    }

    /// Blocks until `stop` is raised, noting each step of the clock as the kernel tells it.
    func run(until stop: StopSignal) {
        while !stop.isRaised {
            let number = waypost_watch_clock_steps()
            guard number >= 0 else { return }
            let timer = Descriptor(owning: number)
            let before = clock.stamp()
            var entries = [PollEntry(timer.number), PollEntry(stop.descriptor)]
            _ = wait(for: &entries)
            guard !stop.isRaised, entries[0].isReady else { continue }
            step(from: before, to: clock.stamp())
        }
    }

    private func step(from before: Stamp, to after: Stamp) {
        let boot = (after.boot - before.boot).milliseconds
        let seconds = Double(after.wall.milliseconds - before.wall.milliseconds - boot) / 1000
        // Re-arming alone is no step; what a person would call one is at least a tenth of a second.
        guard abs(seconds) >= 0.1 else { return }
        state.update { $0.steppedSeconds += seconds }
        note()
        queue.accept(
            Event(
                .clockStep,
                source: "clock",
                detail: [("seconds", .number(seconds))],
                stamp: after
            )
        )
        check()
    }
}
