// Records the health of the device at regular times.
import Host
import Live
import Queue
import Records
import Status

/// Makes one health record per `health.interval`, at ticks of the health timer.
///
/// The live output gets the health each minute, and at once when the state has changed. Used by the
/// timer's thread. A record and what it needs after a restart go with the next commit.
final class HealthRecorder: Sendable {
    /// The time before an upload at which a record becomes due, so that the upload takes it along.
    private static let lead = Duration.seconds(30)

    /// The longest time between two publications.
    private static let pause = Duration.seconds(60)

    private struct State: Sendable {
        var last: BootInstant?
        var published: (at: BootInstant, state: StatusReport.Health)?
        /// Whether the supply voltage was too low at a tick since the last record.
        var undervoltage: Bool?
        /// Whether the device was not enrolled at the last tick.
        var hasWaited = false
    }

    private let queue: Queue
    private let live: StateBox<LiveTap?>
    private let clock: any HostClock
    private let deviceID: String
    private let bootID: String
    private let files: SystemFiles
    private let begins: BootInstant
    private let state = StateBox(State())

    /// `settling`: the time that the sources have to start before the first record.
    init(
        _ queue: Queue,
        live: StateBox<LiveTap?> = StateBox(nil),
        clock: any HostClock,
        deviceID: String,
        bootID: String,
        after settling: Duration,
        files: SystemFiles = SystemFiles()
    ) {
        (self.queue, self.live, self.clock, self.files) = (queue, live, clock, files)
        (self.deviceID, self.bootID) = (deviceID, bootID)
        begins = clock.now() + settling
    }

    /// Records the health if it is due; `report` is the status now.
    ///
    /// `interval` is nil if nothing is recorded. Returns true for the first record of a device that
    /// was not enrolled, or has never reached its server: it is sent at once.
    @discardableResult func check(_ report: StatusReport, every interval: Duration?) -> Bool {
        let now = clock.stamp()
        let undervoltage = files.undervoltage
        state.update { state in
            if let undervoltage { state.undervoltage = undervoltage || state.undervoltage == true }
        }
        // Before the database is open, what it remembers is unknown.
        guard queue.generation > 0, now.boot >= begins else { return false }
        let isDue = interval.map { self.isDue(at: now.boot, every: $0) } ?? false
        let tap = live.value.flatMap { isPublicationDue(report.state, now.boot) ? $0 : nil }
        guard isDue || tap != nil else { return false }
        let right = queue.rightTime(at: now)
        var board = BoardReadings(files)
        board.undervoltage = state.value.undervoltage
        var history = LossHistory(text: queue.remembered(LossHistory.memo))
        let lost = history.ofLastDay(
            report.losses,
            bootID,
            at: Stamp(boot: now.boot, wall: right ?? now.wall),
            isRight: right != nil
        )
        let health = DeviceHealth(
            report,
            lost: lost,
            board: board,
            at: now,
            right: right ?? now.wall
        )
        if let tap {
            tap.accept(health)
            state.update { $0.published = (now.boot, report.state) }
        }
        guard isDue, queue.accept(health) else { return false }
        queue.remember(LossHistory.memo, history.text)
        return state.update { state in
            defer { (state.last, state.undervoltage, state.hasWaited) = (now.boot, nil, false) }
            return state.last == nil && (state.hasWaited || report.upload.lastSuccessAt == nil)
        }
    }

    /// Notes that the device is not enrolled; its next record is a first one.
    func waits() { state.update { ($0.last, $0.hasWaited) = (nil, true) } }

    private func isPublicationDue(_ now: StatusReport.Health, _ time: BootInstant) -> Bool {
        guard let (last, before) = state.value.published else { return true }
        return before != now || time - last >= Self.pause
    }

    private func isDue(at now: BootInstant, every interval: Duration) -> Bool {
        guard let last = state.value.last else { return true }
        var grid = TimerGrid(interval: interval, device: deviceID)
        grid.phase -= min(Self.lead, interval / 2)
        return now >= grid.next(after: last)
    }
}
