// One device of a rollout: what it has answered, and whether it halts the rollout.
import Host

/// A device of a rollout; times are milliseconds since 1970.
package struct RolloutDevice: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable {
        /// Its stage has not begun, or the version was withdrawn when the rollout ended.
        case pending
        /// It was given the version, and has not kept it for two intervals yet.
        case given
        /// It has kept the version for two intervals.
        case held
        /// It was offline in its stage, and gets the version by itself after the rest.
        case apart
        /// It halted the rollout.
        case failed
        /// It is not part of the rollout any more.
        case left
    }

    /// How the server knows a device that has been in contact.
    package struct Contact: Sendable {
        package var lastSeen: Int64
        /// The milliseconds without contact while the server was listening.
        package var silence: Int64 = 0
        /// The usual seconds between its uploads; nil if unknown.
        package var interval: Int64?
        /// Late, as alerts define it.
        package var isLate = false
        /// The records lost in the last day; nil if unknown.
        package var lost: Int64?
        package var isRevoked = false

        package init(lastSeen: Int64) { self.lastSeen = lastSeen }

        /// Two intervals, in milliseconds.
        var twoIntervals: Int64 { interval.map { 2000 * $0 } ?? 3_600_000 }
        /// A day, or two intervals if they are longer.
        var longestWait: Int64 { max(86_400_000, twoIntervals) }
        var isOnline: Bool { silence < longestWait && !isRevoked }
    }

    /// The newest version of a device's settings, and its state.
    package struct Answer: Sendable {
        package var version: Int64
        package var state: DeviceSettings.State
        package var message = ""
        /// When the state was stored.
        package var at: Int64

        package init(version: Int64, state: DeviceSettings.State, message: String = "", at: Int64) {
            (self.version, self.state, self.message, self.at) = (version, state, message, at)
        }
    }

    package let deviceId: String
    package internal(set) var state = State.pending
    /// Why it failed or left; "" otherwise.
    package private(set) var reason = ""
    /// The newest version before the rollout or, since it was given one, that version.
    package private(set) var version: Int64
    /// When it was last given the version; nil before that.
    package private(set) var given: Int64?
    /// The last known answer to the version.
    package private(set) var answer: DeviceSettings.State?
    /// The records lost per day when it was given the version.
    private var lost: Int64?

    init(_ id: String, newest: Int64) { (deviceId, version) = (id, newest) }

    var isUnanswered: Bool { state == .given && answer == .waiting }

    var withdrawal: Rollout.Action? {
        given == nil ? nil : .withdraw(device: deviceId, version: version)
    }

    mutating func leave(_ reason: String) { (state, self.reason) = (.left, reason) }

    mutating func give(_ contact: Contact?, at now: Int64) -> Rollout.Action {
        version += 1
        (state, given, answer, lost) = (.given, now, .waiting, contact?.lost)
        return .give(device: deviceId, version: version)
    }

    /// Updates its state; `isInStages`: others wait for this device.
    mutating func receive(
        _ answer: Answer?,
        _ contact: Contact?,
        isInStages: Bool,
        at now: Int64
    ) {
        guard state != .failed, state != .left else { return }
        let newest = answer?.version ?? 0
        guard newest == version else { return leave("it has version \(newest) of somebody else") }
        guard contact?.isRevoked != true else { return leave("its token was revoked") }
        guard let given, let answer, let contact else { return }
        self.answer = answer.state
        // Until it answers it has not got the version.
        if answer.state == .waiting { lost = contact.lost }
        let isWatched = state == .given || state == .held && isInStages
        if let failure = failure(answer, contact, since: given, isWatched: isWatched, at: now) {
            (state, reason) = (.failed, failure)
        } else if answer.state == .waiting {
            let isAbsent = now - given >= contact.longestWait && !contact.isOnline
            if state == .given, contact.lastSeen <= given, isAbsent { state = .apart }
        } else if state != .held, answer.state != .expired {
            // It may also have fetched the version just before that was withdrawn.
            let (kept, heard) = (now - answer.at, contact.lastSeen - answer.at)
            let isLong = kept >= contact.twoIntervals && heard >= contact.twoIntervals / 2
            state = answer.state == .kept && isLong ? .held : .given
        }
        if lost == nil { lost = contact.lost }
    }

    /// Returns why it halts the rollout; nil if it does not.
    private func failure(
        _ answer: Answer,
        _ contact: Contact,
        since given: Int64,
        isWatched: Bool,
        at now: Int64
    ) -> String? {
        let isThere = state == .given || state == .held
        switch answer.state {
        case .rolledBack, .refused, .failed, .replaced:
            let message = answer.message.isEmpty ? "" : ": \(answer.message)"
            return "\(answer.state.name)\(message)"
        case .expired: return isThere ? answer.state.name : nil
        case .waiting, .trial, .kept: break
        }
        // A device that was not in contact since does not have the version.
        guard isWatched, contact.lastSeen > given else { return nil }
        // Not as soon as it is late: settings may have made its uploads rarer, and its stage waits.
        if !contact.isOnline { return "silent since it was given the version" }
        if let before = lost, let lost = contact.lost, lost > before {
            return "lost \(lost) records in a day, before the version \(before)"
        }
        let isOpen = answer.state != .kept && now - max(given, answer.at) >= 2 * contact.longestWait
        return isOpen ? "uploads, but does not say what became of the version" : nil
    }
}
