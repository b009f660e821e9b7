// Applies the retention of a server once per day.
package import Host
import ServerArchive
package import ServerBase

/// A background thread that deletes what is older than the retention; failures refuse no batch.
///
/// A wrong clock could delete everything. So nothing is deleted while the kernel does not vouch for
/// the clock, nor on the first day after the clock has gone on by more than 30 days.
package final class Retainer: Sendable {
    private static let pause = Duration.seconds(86_400)
    /// After a start, the clock is often synchronised within a minute.
    private static let retry = Duration.seconds(600)
    /// The clock can jump for so long, because the server may have been off.
    private static let longestJump = 30 * Day.milliseconds
    /// The last time at which a round ran, in milliseconds since 1970.
    private static let clockFile = ".receiver-clock"

    /// How a round ended.
    package enum Outcome: Equatable {
        case done
        case clockNotSynced
        case clockJumped
    }

    private let directory: String
    private let retention: Retention
    private let log: ServerLog
    private let clock: any HostClock
    private let isClockSynced: @Sendable () -> Bool
    private let stop: StopSignal

    package init(
        directory: String,
        retention: Retention,
        log: ServerLog,
        clock: any HostClock = SystemClock(),
        isClockSynced: @escaping @Sendable () -> Bool = { ClockEvidence.kernelVouches() ?? false }
    ) throws {
        (self.directory, self.retention, self.log) = (directory, retention, log)
        (self.clock, self.isClockSynced) = (clock, isClockSynced)
        stop = try StopSignal()
    }

    /// Starts the thread, which runs until `finish`; does nothing without a retention.
    package func start() throws {
        guard !retention.isEmpty else { return }
        try startBackgroundThread("retention") { [self] in
            var last = Outcome.done
            warnOfUnknownStreams()
            repeat {
                last = round(after: last)
            } while !stop.sleep(
                for: last == .clockNotSynced ? Self.retry : Self.pause
            )
        }
    }

    package func finish() { stop.raise() }

    private func warnOfUnknownStreams() {
        let message = try? Pruning(directory, retention: retention).unknownStreams()
        if let message { log.warn("retention: \(message)") }
    }

    /// Deletes what is due, and logs what it deleted.
    ///
    /// `last`: the outcome of the round before; a jump of the clock is believed a day later.
    @discardableResult
    package func round(after last: Outcome = .done) -> Outcome {
        let now = clock.wall()
        guard isClockSynced() else {
            if last != .clockNotSynced {
                log.warn(
                    "retention: nothing is deleted before the clock (\(now.rfc3339)) is synchronised"
                )
            }
            return .clockNotSynced
        }
        do {
            if last != .clockJumped, let before = try lastTime(),
                before + Self.longestJump < now.milliseconds
            {
                log.warn(
                    "retention: nothing is deleted for a day, because the clock (\(now.rfc3339)) is more than 30 "
                        + "days after \(WallTime(milliseconds: before).rfc3339), when it was last known; check it"
                )
                return .clockJumped
            }
            let pruning = try Pruning(directory, retention: retention, at: now)
            let streams = try pruning.run(until: stop) { log.warn("retention: \($0)") }
            for stream in streams { log.write("retention: \(stream.line)") }
            let text = Array("\(now.milliseconds)\n".utf8)
            try SmallFile.replace("\(directory)/\(Self.clockFile)", text, mode: 0o640)
        } catch {
            log.warn("retention: not all old days were deleted: \(error)")
        }
        return .done
    }

    /// Returns the time of the last round; before the first one, of the last batch.
    private func lastTime() throws -> Int64? {
        let path = "\(directory)/\(Self.clockFile)"
        if fileSize(path) != nil {
            let text = String(decoding: try SmallFile.read(path, limit: 64).bytes, as: UTF8.self)
            if let time = Int64(text.prefix { $0 != "\n" }) { return time }
        }
        return try Contacts.read(directory: directory).values.map(\.lastSeen.milliseconds).max()
    }
}

extension PrunedStream {
    /// A line for people, such as `places: 3 days (2026-01-01 to 2026-01-03), 3 files, 1234 bytes`.
    package var line: String {
        let range = days.count > 1 ? "\(days[0]) to \(days[days.count - 1])" : days.first ?? ""
        return "\(stream): \(counted(days.count, "day")) (\(range)), "
            + "\(counted(files, "file")), \(bytes) bytes"
    }
}
