// The reported troubles of a device, which decide when an alert is due.
import ServerBase

/// The alert state of a device, stored between rounds; times are milliseconds since 1970.
struct AlertMarks: Sendable, Equatable {
    /// A trouble that was reported, or existed when the device was first seen.
    struct Mark: Sendable, Equatable {
        var since: Int64
        /// When the trouble ended; nil while it lasts.
        var calm: Int64?
    }

    /// `since`: the last contact before it was late; `calm`: the first contact after that.
    var late: Mark?
    var losing: Mark?
    var critical: Mark?

    /// A trouble is reported again only if it was over for this long; one that flaps is reported
    /// once.
    private static let rest: Int64 = 3_600_000
    /// The least time between two syncs that count as two.
    private static let twice: Int64 = 60_000

    init() {}

    /// The state of a device at first sight: existing troubles are not reported as changes.
    init(firstSight state: DeviceState, at now: Int64) {
        _ = receive(state, isWhole: true, at: now)
    }

    /// Updates the state and returns the alerts that are due.
    ///
    /// `isWhole`: the events about losses and sources are known; otherwise only silence is checked.
    mutating func receive(_ state: DeviceState, isWhole: Bool, at now: Int64) -> [Alert] {
        var alerts = evaluateSilence(state, at: now)
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

    /// Reports late once; reports back after two syncs, or an hour after the first.
    private mutating func evaluateSilence(_ state: DeviceState, at now: Int64) -> [Alert] {
        guard state.late.isEmpty else {
            let isReported = late != nil
            late = Mark(since: state.lastSeen)
            let reason = state.late.joined(separator: ", ")
            return isReported ? [] : [Alert(.late, state, because: reason, at: now)]
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
        // Clock set back: the rest period starts over.
        let calm = min(mark?.calm ?? now, now)
        mark?.calm = calm
        if now - calm >= rest { mark = nil }
        return false
    }
}
