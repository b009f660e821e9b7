// Applies the retention of a server once per day.
import Host

/// A background thread that deletes what is older than the retention; failures refuse no batch.
final class Retainer: Sendable {
    private static let pause = Duration.seconds(86_400)
    /// A server without a single batch for so long may have a clock that is ahead.
    private static let longestSilence = 30 * Day.milliseconds

    private let directory: String
    private let retention: Retention
    private let log: ServerLog
    private let clock: any HostClock
    private let isClockSynced: @Sendable () -> Bool
    /// The last batch before the start, in milliseconds since 1970; nil if there was none.
    private let heardBefore: Int64?
    private let stop: StopSignal

    init(
        directory: String,
        retention: Retention,
        log: ServerLog,
        clock: any HostClock = SystemClock(),
        isClockSynced: @escaping @Sendable () -> Bool = { ClockEvidence.kernelVouches() ?? false }
    ) throws {
        (self.directory, self.retention, self.log) = (directory, retention, log)
        (self.clock, self.isClockSynced) = (clock, isClockSynced)
        heardBefore = try Contacts.read(directory: directory).values.map(\.lastSeen.milliseconds)
            .max()
        stop = try StopSignal()
    }

    /// Starts the thread, which runs until `finish`; does nothing without a retention.
    func start() throws {
        guard !retention.isEmpty else { return }
        try startBackgroundThread("retention") { [self] in
            repeat { round() } while !stop.sleep(for: Self.pause)
        }
    }

    func finish() { stop.raise() }

    /// Deletes what is due, and logs what it deleted.
    func round() {
        let now = clock.wall()
        guard isCredible(now) else {
            return log.warn(
                "retention: nothing is deleted, because the clock (\(now.rfc3339)) is not synchronised and the "
                    + "last batch before the start is more than 30 days old"
            )
        }
        do {
            let pruning = try Pruning(directory, retention: retention, at: now)
            for stream in try pruning.run(until: stop) { log.write("retention: \(stream.line)") }
        } catch {
            log.warn("retention: not all old days were deleted: \(error)")
        }
    }

    /// A clock that jumped ahead would let a day's round delete everything.
    private func isCredible(_ now: WallTime) -> Bool {
        guard !isClockSynced(), let heardBefore else { return true }
        return now.milliseconds - heardBefore < Self.longestSilence
    }
}

extension PrunedStream {
    /// A line for people, such as `places: 3 days (2026-01-01 to 2026-01-03), 3 files, 1234 bytes`.
    package var line: String {
        let range = days.count > 1 ? "\(days[0]) to \(days[days.count - 1])" : days.first ?? ""
        return "\(stream): \(days.count) \(days.count == 1 ? "day" : "days") (\(range)), "
            + "\(files) \(files == 1 ? "file" : "files"), \(bytes) bytes"
    }
}
