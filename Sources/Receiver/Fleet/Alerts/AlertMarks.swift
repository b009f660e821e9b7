// What was told of a device, and when it may be told again.

/// Kept on the disk from look to look; times are milliseconds since 1970.
struct AlertMarks: Sendable, Equatable {
    /// A trouble that was told, or was there when the device was first seen.
    struct Mark: Sendable, Equatable {
        var since: Int64
        /// Since when it is over; nil: it is not.
        var calm: Int64?
    }

    /// `since`: when it was last heard before; `calm`: when it was heard first after that.
    var late: Mark?
    var losing: Mark?
    var critical: Mark?

    /// A trouble that was over for so long is told again when it comes again; one that comes and goes is told once.
    private static let rest: Int64 = 3_600_000
    /// Between two syncs that count as two.
    private static let twice: Int64 = 60_000

    init() {}

    /// A device that is seen first: what is wrong with it already is no change.
    init(firstSight state: DeviceState, at now: Int64) {
        _ = take(state, isWhole: true, at: now)
    }

    /// What is to be told now.
    ///
    /// `isWhole`: what events tell of losses and sources is known; else only its silence is judged.
    mutating func take(_ state: DeviceState, isWhole: Bool, at now: Int64) -> [Alert] {
        var alerts = takeSilence(state, at: now)
        guard isWhole else { return alerts }
        if Self.begins(&losing, state.lost > 0, at: now) {
            let reason = "\(state.lost) lost in the last day"
            alerts.append(Alert(.losing, state, because: reason, at: now))
        }
        if Self.begins(&critical, !state.critical.isEmpty, at: now) {
            let reason = state.critical.joined(separator: "; ")
            alerts.append(Alert(.critical, state, because: reason, at: now))
        }
        return alerts
    }

    /// Late once; back when it has come twice, or once and is still not late an hour later.
    private mutating func takeSilence(_ state: DeviceState, at now: Int64) -> [Alert] {
        guard state.late.isEmpty else {
            let isTold = late != nil
            late = Mark(since: state.lastSeen)
            let reason = state.late.joined(separator: ", ")
            return isTold ? [] : [Alert(.late, state, because: reason, at: now)]
        }
        guard let mark = late, state.lastSeen != mark.since else { return [] }
        let came = min(mark.calm ?? state.lastSeen, state.lastSeen)
        late?.calm = came
        guard state.lastSeen - came >= Self.twice || now - came >= Self.rest else { return [] }
        late = nil
        let silence = Words.span(seconds: (came - mark.since) / 1000)
        return [Alert(.back, state, because: "heard again after \(silence)", at: now)]
    }

    private static func begins(_ mark: inout Mark?, _ isThere: Bool, at now: Int64) -> Bool {
        if isThere {
            defer { mark = Mark(since: mark?.since ?? now) }
            return mark == nil
        }
        // A clock that was set back begins the rest anew.
        let calm = min(mark?.calm ?? now, now)
        mark?.calm = calm
        if now - calm >= rest { mark = nil }
        return false
    }
}
