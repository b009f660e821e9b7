// The schedules of all sources in a running gateway: time, position, and what each source is to do.
import Audio
import Host
import Location
import Queue
import Records
import Schedule
import Setup
import Status
import StatusBoard

/// The order of its schedule to a source.
enum ScheduleOrder: Sendable, Equatable {
    /// Its window is open, or opens so soon that its device is opened.
    case run(DeviceWindow)
    /// Its window closed at this time: a run may go on until its last audio has arrived.
    case ends(Stamp)
    /// Its window closed at this time.
    case rests(Stamp)

    /// When its window closed; nil while it is open.
    var closedAt: Stamp? {
        switch self {
        case .run: nil
        case .ends(let stamp), .rests(let stamp): stamp
        }
    }
}

/// Why the time is believed that the schedules follow.
private enum ClockTrust: Sendable {
    case vouched
    /// The clock as it is set.
    case unsynced
    /// The clock is behind the last known time: that time and the time since boot.
    case counted

    /// What `status` adds; nil if nothing.
    var remark: String? {
        switch self {
        case .vouched: nil
        case .unsynced: " by a clock that is not synced"
        case .counted: " by the last known time, because the clock is wrong"
        }
    }
}

/// Follows the schedules of the sources, with the best known time and position.
///
/// `look` is called by `Services`, one call at a time: at each planned change, at a step or sync of
/// the clock, a move, a reload, at each health tick, and at least once per hour. Each change of a
/// window passes through `report`, in order and with its exact time.
final class SourceSchedule: Sendable {
    /// A device that has moved this far (m) has another sun: by up to half a minute.
    private static let move = 10_000.0
    /// The longest time between two looks while a schedule is set: the clock may be slewed.
    private static let pause = Duration.seconds(3600)

    private struct Content: Sendable {
        var tracks: [SourceName: WindowTrack] = [:]
        var settings = ScheduleSettings()
        var stored: ScheduleMemo?
        /// The last known time before this start.
        var known: WallTime?
        /// The last position from the GNSS receiver in this start.
        var heard: SitePosition?
        /// The position in use.
        var position: SitePosition? { gnss ?? settings.fixed }
        var isLocating = true
        /// The windows of audio that passed between two looks: the gateway was suspended or busy.
        var missed: [DueTime] = []
        /// When the schedules were last brought up to date.
        var looked: BootInstant?
        /// The GNSS receiver's position, else the one stored before this start.
        ///
        /// A device with another fixed position was carried to another site.
        var gnss: SitePosition? {
            let isOfSite = isLocating && stored?.fixed == settings.fixed
            return heard ?? (isOfSite ? stored?.position : nil)
        }
    }

    private let queue: Queue
    private let board: GatewayBoard
    private let clock: any HostClock
    private let log: Log
    private let content = StateBox(Content())
    /// Signalled when the time, the position or the configuration has changed.
    let hasChanged: Wakeup

    init(_ queue: Queue, _ board: GatewayBoard, clock: any HostClock, log: Log) throws {
        (self.queue, self.board, self.clock, self.log) = (queue, board, clock, log)
        hasChanged = try Wakeup()
    }

    // MARK: Time and position

    /// Takes a believed fix; never blocks.
    func record(place fix: Fix) {
        guard let place = SitePosition(latitude: fix.latitude, longitude: fix.longitude) else {
            return
        }
        let hasMoved = content.update { content in
            if let heard = content.heard, heard.distance(to: place) < Self.move { return false }
            content.heard = place
            return content.tracks.values.contains { $0.schedule.needsSun }
        }
        if hasMoved { hasChanged.signal() }
    }

    /// Returns the best known time; nil if none is known at all.
    ///
    /// It is that of this boot's clock if a source vouched for it, else the clock as it is set, but
    /// not before the last known time.
    private func time(_ now: Stamp, _ known: WallTime?) -> (stamp: Stamp, trust: ClockTrust)? {
        if let right = queue.rightTime(at: now) {
            return (Stamp(boot: now.boot, wall: right), .vouched)
        }
        if now.wall >= max(.release, known ?? .release) { return (now, .unsynced) }
        // The clock fell back: boot time since the last known time is the least that has passed.
        return known.map {
            (Stamp(boot: now.boot, wall: $0 + .nanoseconds(now.boot.nanoseconds)), .counted)
        }
    }

    /// Returns the closed windows since `end` in which audio was due, the first one from `end` on,
    /// and when it was first due in the present window; nil without a schedule.
    func due(since end: Stamp) -> (end: Stamp?, missed: [DueTime])? {
        let content = content.value
        guard let track = content.tracks[.audio], !track.schedule.isAlways, track.doubt == nil,
            let now = time(clock.stamp(), content.known)?.stamp
        else { return nil }
        func stamp(_ time: WallTime) -> Stamp {
            now.advanced(by: .milliseconds(time.milliseconds - now.wall.milliseconds))
        }
        let times = track.schedule.openTimes(
            from: now.wall(at: end.boot),
            to: now.wall,
            content.position,
            limit: 100
        )
        var missed = times.map { DueTime(from: stamp($0.from), to: stamp($0.to)) }
        let isOpen = track.schedule.state(at: now.wall, position: content.position).isOpen
        return (isOpen ? missed.popLast()?.from : nil, missed)
    }

    /// Returns the sources that other schedules would not open within some days; none while no
    /// time or no position is known that says so.
    func closed(_ settings: ScheduleSettings, days: Int) -> [SourceName] {
        let content = content.value
        guard let now = time(clock.stamp(), content.known)?.stamp.wall else { return [] }
        let position = content.gnss ?? settings.fixed
        return SourceName.allCases.filter { name in
            let schedule = settings.schedule(of: name)
            guard !schedule.isAlways, position != nil || !schedule.needsSun else { return false }
            let end = now + .seconds(86_400 * Int64(days))
            return schedule.openTimes(from: now, to: end, position, limit: 1).isEmpty
        }
    }

    /// Returns the windows of audio that passed between two looks, once.
    func takeMissed() -> [DueTime] {
        content.update { content in
            defer { content.missed = [] }
            return content.missed
        }
    }

    /// Where the device stands by its configuration.
    var site: SitePosition? { content.value.settings.fixed }

    // MARK: Orders

    /// Brings all schedules up to now; returns what each source is to do, and the windows that
    /// passed since the last look.
    func look(
        _ configuration: Configuration
    ) -> (orders: [SourceName: ScheduleOrder], missed: [SourceName: [DueTime]]) {
        let now = clock.stamp()
        let memo = queue.remembered(ScheduleMemo.name)
        let (changes, missed, state, known) = content.update { content in
            content.looked = now.boot
            content.settings = configuration.schedules
            content.stored = content.stored ?? ScheduleMemo(memo)
            content.known = content.known ?? content.stored?.time
            content.isLocating = configuration.location.isEnabled
            let known = time(now, content.known)
            var (changes, missed) = ([WindowChange](), [SourceName: [DueTime]]())
            for name in SourceName.allCases {
                let schedule = content.settings.schedule(of: name)
                var track = content.tracks[name] ?? WindowTrack(name, schedule)
                track.schedule = schedule
                let passed = track.advance(
                    to: known?.stamp ?? now,
                    isRight: known != nil,
                    position: content.position
                )
                let windows = Self.windows(passed)
                if name == .audio, configuration.audio.isEnabled { content.missed += windows }
                missed[name] = windows
                changes += passed
                content.tracks[name] = track
            }
            return (changes, missed, content, known)
        }
        for change in changes { report(change) }
        publish(state, known?.stamp ?? now, known?.trust ?? .unsynced)
        if let known, known.trust == .vouched { remember(state, known.stamp) }
        let orders: [SourceName: ScheduleOrder] = state.tracks.mapValues { track in
            if let window = track.window(at: now.boot, isPrompt: track.isPrompt) {
                return .run(window)
            }
            let end = track.since ?? now
            return track.isClosing(at: now.boot, isPrompt: track.isPrompt)
                ? .ends(end) : .rests(end)
        }
        return (orders, missed)
    }

    /// Returns the windows that opened and closed.
    private static func windows(_ changes: [WindowChange]) -> [DueTime] {
        zip(changes, changes.dropFirst()).compactMap { opened, closed in
            opened.isOpen && !closed.isOpen ? DueTime(from: opened.at, to: closed.at) : nil
        }
    }

    /// When to look again; nil while no schedule is set.
    var wake: BootInstant? {
        let now = clock.now()
        let tracks = content.value.tracks.values.filter { !$0.schedule.isAlways }
        guard !tracks.isEmpty else { return nil }
        // An edge may have passed since the last look, while a source was stopped.
        let last = content.value.looked ?? now
        let next = tracks.compactMap { $0.wake(after: last, isPrompt: $0.isPrompt) }.min()
        return min(next ?? now + Self.pause, now + Self.pause)
    }

    /// Receives each change of a window, in order.
    private func report(_ change: WindowChange) {
        guard content.value.tracks[change.source]?.schedule.isAlways == false else { return }
        log.info(
            change.isOpen ? "window opened" : "window closed",
            [
                "source": change.source.rawValue, "at": change.at.wall.rfc3339,
                "by": change.cause.isEmpty ? "the present time" : change.cause,
            ]
        )
    }

    private func publish(_ content: Content, _ now: Stamp, _ trust: ClockTrust) {
        var figures = ScheduleFigures()
        figures.position =
            content.tracks.values.contains { $0.schedule.needsSun }
            ? content.position?.rounded : nil
        for (name, track) in content.tracks where !track.schedule.isAlways {
            if !track.isOpen {
                figures.off[name] = track.text(at: now.wall, trust)
            } else if let doubt = track.doubt {
                figures.remarks[name] = doubt.text(name)
            } else if trust == .counted, let remark = trust.remark {
                figures.remarks[name] = "follows \(name.rawValue).schedule\(remark)"
            }
        }
        guard figures != board.schedule.state.value else { return }
        board.schedule.loaded(figures)
    }

    /// Stores time and position for the next start, with the next commit.
    private func remember(_ content: Content, _ now: Stamp) {
        let memo = ScheduleMemo(
            time: now.wall,
            position: content.gnss,
            fixed: content.settings.fixed
        )
        let isNews = self.content.update { content in
            if let old = content.stored, old.position == memo.position, old.fixed == memo.fixed,
                abs(old.time.milliseconds - memo.time.milliseconds) < 600_000
            {
                return false
            }
            content.stored = memo
            return true
        }
        if isNews, content.tracks.values.contains(where: { !$0.schedule.isAlways }) {
            queue.remember(ScheduleMemo.name, memo.text)
        }
    }
}

extension ScheduleSettings {
    func schedule(of name: SourceName) -> Schedule {
        switch name {
        case .audio: audio
        case .beacons: beacons
        case .location: Schedule()
        }
    }
}

extension WindowTrack {
    /// A Bluetooth scan needs neither lead nor tail.
    fileprivate var isPrompt: Bool { source != .audio }

    /// Returns the text that `status` shows while the window is closed.
    fileprivate func text(at now: WallTime, _ trust: ClockTrust) -> String {
        let doubt = trust.remark.map { ",\($0)" } ?? ""
        guard let next else { return "off: its schedule does not open within a year\(doubt)" }
        let time = next.at.wall.rfc3339
        let day = next.at.wall < now + .seconds(86_400) ? "" : "\(time.prefix(10)) "
        return "off until \(day)\(time.dropFirst(11).prefix(5)) UTC (\(next.cause))\(doubt)"
    }
}

extension WindowTrack.Doubt {
    fileprivate func text(_ name: SourceName) -> String {
        switch self {
        case .time: "no time is known for \(name.rawValue).schedule: recording all the time"
        case .position:
            "no position is known for the sun of \(name.rawValue).schedule: recording all the time; "
                + "set location.fixed"
        }
    }
}

/// The last known time and position, for the schedules after a restart.
struct ScheduleMemo: Sendable, Equatable {
    static let name = "schedule"

    var time: WallTime
    var position: SitePosition?
    /// `location.fixed` at that time.
    var fixed: SitePosition?

    var text: String { "\(time.milliseconds) \(position?.text ?? "-") \(fixed?.text ?? "-")" }
}

extension ScheduleMemo {
    /// Parses `text`; nil for anything else.
    init?(_ text: String?) {
        let parts = (text ?? "").split(separator: " ")
        guard parts.count == 3, let time = Int64(parts[0]) else { return nil }
        self.init(
            time: WallTime(milliseconds: time),
            position: SitePosition(String(parts[1])),
            fixed: SitePosition(String(parts[2]))
        )
    }
}
