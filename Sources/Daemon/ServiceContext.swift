// The objects that the parts of a gateway share.
import Host
import Live
import Queue
import Records
import Remote
import Setup
import Status
import Upload

/// The shared objects that live longer than a configuration.
struct ServiceContext: Sendable {
    let queue: Queue
    let board: GatewayBoard
    let budget: DayBudget
    let clock: any HostClock
    let clockWatch: ClockMonitor
    let schedule: SourceSchedule
    let deviceID: String
    let version: String
    let environment: [String: String]
    let log: Log
    /// The values to be published live; nil while nothing is.
    let live = StateBox<LiveTap?>(nil)
    /// Recorded audio, for programs that listen.
    let sound: AudioTap
    /// An upgrade of this program is on trial.
    let isOnTrial = StateBox(false)
    /// The server's offers of jobs; nil where none are done.
    var jobs: OfferedJobs?
    /// Whether the effort accounts are kept.
    var keepsEffort = true

    /// Notes in its effort account what a source does from `stamp` on (default: now).
    func record(_ effort: SourceEffort, of name: SourceName, at stamp: Stamp? = nil) {
        guard keepsEffort else { return }
        queue.record(effort, of: name.stream, at: stamp)
    }

    /// Notes that a window of its schedule closed.
    func recordClosed(_ name: SourceName, at stamp: Stamp? = nil) {
        record(.scheduledOff("\(name.rawValue).schedule"), of: name, at: stamp)
    }

    /// Why a window that has opened is not recorded, in an effort account.
    static let late = "the gateway was suspended or busy when the window opened"

    /// Notes windows of its schedule that opened and closed unnoticed.
    func record(passed windows: [DueTime], of name: SourceName) {
        for window in windows {
            record(.failed(Self.late), of: name, at: window.from)
            recordClosed(name, at: window.to)
        }
    }

    /// Records the version of the server's settings that is in force, if another one was before.
    ///
    /// The event and the memo of the version are in one commit.
    func recordSettings(_ configuration: Configuration) {
        let memo = "settings in force"
        let old = queue.remembered(memo).flatMap { Int64($0) } ?? 0
        let new = configuration.settingsVersion ?? 0
        guard new != old else { return }
        let stored = try? StoredSettings.read(in: configuration.stateDirectory)
        var detail: [(key: String, value: EventValue)] = [
            ("old_version", .integer(old)), ("new_version", .integer(new)),
        ]
        if let outcome = stored?.outcome, !outcome.message.isEmpty {
            detail.append(("why", .text(outcome.message)))
        }
        if let current = stored?.current, current.number == new {
            detail.append(("text", .text(current.text)))
        }
        queue.accept(
            Event(.settingsChanged, source: "gateway", detail: detail, stamp: clock.stamp())
        )
        queue.remember(memo, "\(new)")
        log.info("settings", ["from": "\(old)", "to": "\(new)"])
    }

    /// Notes in all effort accounts that the machine was suspended.
    func recordSuspend(from start: Stamp, to end: Stamp) {
        guard keepsEffort else { return }
        queue.recordSleep(from: start, to: end)
    }
}

extension SourceName {
    /// The stream of its records.
    var stream: Records.Stream {
        switch self {
        case .beacons: .beacons
        case .location: .location
        case .audio: .audio
        }
    }
}
