// Follows the schedule of one source through time.
import Host
import Records
import Schedule
import Status

/// A window of a source opened or closed, with the exact time.
struct WindowChange: Sendable, Equatable {
    var source: SourceName
    var isOpen: Bool
    /// Both clocks, the wall clock as it is right: of the window's edge, or when it was noticed
    /// (at a start, a reload, or a step of the clock).
    var at: Stamp
    /// The edge as the configuration writes it: `sunrise-1h`; empty if it was not planned.
    var cause = ""
}

/// The state of one source's schedule since the start; a pure value.
///
/// Planned changes happen at their planned time, however late they are noticed; all others when
/// they are noticed.
struct WindowTrack: Sendable {
    /// The next change, on both clocks.
    struct Plan: Sendable, Equatable {
        var at: Stamp
        var cause: String
    }

    /// The reason why a source runs without following its schedule.
    enum Doubt: Sendable, Equatable {
        case time
        case position
    }

    /// A device is opened this early, so that its first frames are there at the window's start.
    private static let lead = Duration.seconds(2)
    /// A device is closed this late, so that its last frames have arrived.
    private static let tail = Duration.seconds(1)
    /// The wall clock may be slewed by this much before a plan is changed.
    private static let slack = Duration.milliseconds(50)
    /// The most changes that one call makes up for, after a suspend.
    private static let maxChanges = 1000

    let source: SourceName
    var schedule: Schedule
    private(set) var isOpen = true
    /// When the present state began; nil before the first call of `advance`.
    private(set) var since: Stamp?
    /// Whether the present state began at a planned time, with a device that was opened before.
    private(set) var wasPlanned = false
    private(set) var next: Plan?
    private(set) var doubt: Doubt?

    init(_ source: SourceName, _ schedule: Schedule) {
        (self.source, self.schedule) = (source, schedule)
    }

    /// Brings the state up to `now`; returns the changes since the last call, oldest first.
    ///
    /// `right`: the right wall time at `now`, nil if nothing is known of it.
    mutating func advance(
        to now: Stamp,
        isRight: Bool,
        position: SitePosition?
    ) -> [WindowChange] {
        doubt =
            schedule.isAlways
            ? nil : !isRight ? .time : schedule.needsSun && position == nil ? .position : nil
        guard doubt == nil else {
            next = nil
            return isOpen && since != nil ? [] : [change(to: true, at: now)]
        }
        var changes: [WindowChange] = []
        while let plan = next, plan.at.boot <= now.boot, changes.count < Self.maxChanges {
            changes.append(change(to: !isOpen, at: plan.at, cause: plan.cause))
            let state = schedule.state(at: plan.at.wall, position: position)
            next = state.isOpen == isOpen ? Self.plan(state.next, plan.at) : nil
        }
        // The clock may be a little behind the edge that was just passed.
        var wall = now.wall
        if let since, wasPlanned, wall < since.wall, since.wall < wall + .seconds(1) {
            wall = since.wall
        }
        let state = schedule.state(at: wall, position: position)
        if since == nil || state.isOpen != isOpen {
            changes.append(change(to: state.isOpen, at: now))
        }
        plan(state.next, now)
        return changes
    }

    private mutating func change(to isOpen: Bool, at stamp: Stamp, cause: String = "")
        -> WindowChange
    {
        (self.isOpen, since, wasPlanned) = (isOpen, stamp, !cause.isEmpty)
        return WindowChange(source: source, isOpen: isOpen, at: stamp, cause: cause)
    }

    private static func plan(_ change: ScheduleState.Change?, _ now: Stamp) -> Plan? {
        change.map { change in
            let left = Duration.milliseconds(change.at.milliseconds - now.wall.milliseconds)
            return Plan(at: Stamp(boot: now.boot + left, wall: change.at), cause: change.cause)
        }
    }

    private mutating func plan(_ change: ScheduleState.Change?, _ now: Stamp) {
        let new = Self.plan(change, now)
        if let old = next, let new, old.at.wall == new.at.wall, old.cause == new.cause,
            abs((old.at.boot - new.at.boot).nanoseconds) < Self.slack.nanoseconds
        {
            return
        }
        next = new
    }

    // MARK: The device

    /// The window for which the device is to be open, now or soon; nil if it is to be closed.
    ///
    /// A Bluetooth scan starts at once and has no end to wait for, so `isPrompt` has neither lead nor
    /// tail.
    func window(at now: BootInstant, isPrompt: Bool) -> DeviceWindow? {
        guard let since else { return nil }
        guard !isOpen else {
            return DeviceWindow(
                opens: since,
                wasPlanned: wasPlanned && !isPrompt,
                closes: next?.at.boot
            )
        }
        guard !isPrompt else { return nil }
        if let next, now >= opening(next) {
            return DeviceWindow(opens: next.at, wasPlanned: true, closes: nil)
        }
        return nil
    }

    /// Whether the device of a window that has just closed may still be open.
    func isClosing(at now: BootInstant, isPrompt: Bool) -> Bool {
        !isOpen && !isPrompt && now < closing
    }

    /// When to look again; nil if nothing is planned.
    func wake(after now: BootInstant, isPrompt: Bool) -> BootInstant? {
        var times = [next?.at.boot]
        if !isOpen, !isPrompt { times += [closing, next.map(opening)] }
        return times.compactMap { $0 }.filter { $0 > now }.min()
    }

    private func pause(until next: Plan?) -> Duration {
        guard let next, let since, wasPlanned else { return .seconds(3600) }
        return next.at.boot - since.boot
    }

    private func opening(_ next: Plan) -> BootInstant {
        next.at.boot - min(Self.lead, pause(until: next) / 2)
    }

    /// The end of the tail of the window that has closed.
    private var closing: BootInstant {
        guard let since, wasPlanned else { return BootInstant(nanoseconds: .min) }
        return since.boot + min(Self.tail, pause(until: next) / 2)
    }
}

/// The window for which a device is open.
struct DeviceWindow: Sendable, Equatable {
    var opens: Stamp
    /// Whether the device was opened before, so that its first frame is due at `opens`.
    var wasPlanned: Bool
    var closes: BootInstant?

    /// When its first audio is due; nil without a schedule.
    var due: Stamp? { wasPlanned || closes != nil ? opens : nil }

    var recording: RecordingWindow {
        RecordingWindow(opens: wasPlanned ? opens.boot : nil, closes: closes)
    }
}
