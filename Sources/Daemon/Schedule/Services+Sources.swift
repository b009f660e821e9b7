// Starts, stops and restarts the sources, as configuration, enrolment and schedules say.
import Audio
import CLinux
import Host
import Queue
import Records
import Setup
import Status
import StatusBoard

extension Services {
    /// Reads from the disk whether collecting is allowed, and starts and stops sources.
    func changeSources() -> [SourceName] {
        let why = Self.readWhyNotCollecting(state.value)
        state.update { $0.whyNot = why }
        context.board.whyNotCollecting.update { $0 = why }
        return adaptSources()
    }

    /// Starts and stops sources as configuration, enrolment and schedules say.
    private func adaptSources() -> [SourceName] {
        let now = state.value
        let (orders, missed) = context.schedule.look(now.configuration)
        var wanted: [SourceName: SourceOrder] = [:]
        var resting: [SourceName: String] = [:]
        for name in SourceName.allCases {
            guard let slice = SourceSlice(name, now.configuration) else {
                resting[name] = "disabled in the configuration"
                continue
            }
            if let why = now.whyNot {
                resting[name] = why
            } else {
                wanted[name] = SourceOrder(slice, orders[name], after: now.sources[name])
            }
        }
        for (name, run) in now.sources where resting[name] == nil {
            run.obey(orders[name], passed: missed[name] ?? [], context)
        }
        let leaving = now.sources.filter { $0.value.differs(from: wanted[$0.key]) }
        planStop(of: Array(leaving.keys))
        stop(Array(leaving.keys), by: SystemClock().now() + Self.stopLimit) {
            // The end of a window has been noted.
            resting[$0] ?? (leaving[$0]?.hasClosed == true ? nil : "stopped for other settings")
        }
        recordEffort(resting, orders, missed, before: now)
        context.board.resting.update { [resting] in $0 = resting }
        // While audio is switched off, missing sound is not a gap.
        if !now.configuration.audio.isEnabled { AudioMemo(.off).keep(in: context.queue) }
        let coming = wanted.keys.filter { source($0) == nil }
        for name in coming { start(wanted[name]) }
        return SourceName.allCases.filter { leaving.keys.contains($0) || coming.contains($0) }
    }

    /// Notes in the effort accounts which sources are off, and which have a closed window.
    private func recordEffort(
        _ resting: [SourceName: String],
        _ orders: [SourceName: ScheduleOrder],
        _ missed: [SourceName: [DueTime]],
        before: State
    ) {
        for (name, why) in resting { context.record(.off(why), of: name) }
        for (name, windows) in missed where resting[name] == nil && before.sources[name] == nil {
            context.record(passed: windows, of: name)
        }
        for (name, order) in orders where resting[name] == nil {
            guard let end = order.closedAt else { continue }
            // A window that closed earlier closed while the source was not running.
            let stamp = before.sources[name] == nil ? nil : end
            context.recordClosed(name, at: stamp)
        }
    }

    /// Starts and stops sources at each change of their schedules; blocks until `stop`.
    func followSchedules(until stop: StopSignal) {
        let timer = Descriptor(owning: waypost_boottime_timer())
        let schedule = context.schedule
        while !stop.isRaised {
            schedule.hasChanged.clear()
            // Sources and other changes have heartbeats of their own.
            stop.life.rests()
            let changed: [SourceName]? = turn.take(within: Self.turnLimit) {
                state.value.isStopped ? [] : adaptSources()
            }
            // Another change hangs: try again soon.
            let wake = changed == nil ? context.clock.now() + .seconds(1) : schedule.wake
            waypost_arm_timer(timer.number, wake?.nanoseconds ?? 0)
            var entries = [
                PollEntry(timer.number), PollEntry(schedule.hasChanged.descriptor),
                PollEntry(stop.descriptor),
            ]
            _ = stop.wait(for: &entries)
        }
    }

    private func start(_ order: SourceOrder?, isOnTrial: Bool = false) {
        guard let order else { return }
        let name = order.slice.name
        let board = context.board.sources[name]
        if let why = tooManyHang(name.rawValue, board) {
            return context.record(.failed(why.message), of: name)
        }
        attempt(name.rawValue, board) {
            let tap = order.slice.isTapped ? state.value.tap : nil
            let run = try SourceRun(order, context, tap: tap, isOnTrial: isOnTrial)
            state.update { $0.sources[name] = run }
        }
    }

    /// Restarts one source, and no other; returns why that failed, or nil.
    ///
    /// Waits at most `stopLimit` for the source to release its device.
    func restart(_ name: SourceName) -> String? {
        let off = context.board.schedule.state.value?.off[name]
        if let why = context.board.resting.value[name] ?? off {
            return "\(name.rawValue) is not running: \(why)"
        }
        let isDone = restart(name, within: Self.stopLimit, isOnTrial: false)
        guard let isDone else {
            return "another start or stop is in progress and hangs; `waypost status` shows it"
        }
        return isDone ? nil : "\(name.rawValue) could not be started; `waypost status` says why"
    }

    /// Abandons a hung run of a source, and starts another.
    func replace(_ name: SourceName) { _ = restart(name, within: .zero, isOnTrial: true) }

    /// Restarts a source; returns nil if another change did not end in time.
    private func restart(_ name: SourceName, within limit: Duration, isOnTrial: Bool) -> Bool? {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped, let run = source(name) else { return false }
            if !isOnTrial { planStop(of: [name]) }
            let why = isOnTrial ? nil : "stopped and started again"
            stop([name], by: SystemClock().now() + limit) { _ in why }
            start(run.order, isOnTrial: isOnTrial)
            return source(name) != nil
        }
    }

    /// Remembers that audio is missing from now on because of a stop that was asked for.
    func planStop(of names: [SourceName]) {
        guard names.contains(.audio), let run = source(.audio), !run.hasClosed else { return }
        let now = context.clock.stamp()
        // A device that was opened for a later window has not recorded anything yet.
        guard run.window.opens.boot <= now.boot else { return }
        AudioMemo(.stopped(now), due: run.window.due).keep(in: context.queue)
    }
}
