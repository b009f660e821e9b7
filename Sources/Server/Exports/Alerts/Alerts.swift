// Sends alerts about devices that fall silent, return, lose records or are critical.
import Host
import SQLite
package import ServerArchive
package import ServerBase
package import ServerIndex
import ServerWeb

/// The configured alert channels.
package struct AlertSettings: Sendable {
    /// The path of a program; nil for none.
    package var command: String?
    /// An HTTP or HTTPS URL; nil for none.
    package var url: String?
    package var userAgent = "waypost-receiver"

    package init() {}

    var channels: [AlertChannel] {
        var channels: [AlertChannel] = []
        if let command {
            let program = AlertCommand(path: command)
            channels.append(AlertChannel(name: "command") { try program.run($0, $1, until: $2) })
        }
        if let url {
            let agent = userAgent
            channels.append(
                AlertChannel(name: "url") { _, json, stop in
                    try WebPost.send(json, to: url, userAgent: agent, until: stop)
                }
            )
        }
        return channels
    }
}

/// The background thread of alerts and rollouts: no gateway waits for it, and its failures never
/// refuse a batch.
package final class Alerts: Sendable {
    /// The wait after a failure.
    private static let pause = Duration.seconds(30)

    private let directory: String
    private let channels: [AlertChannel]
    private let fleet: Fleet
    private let jobs: DeviceJobs
    private let log: ServerLog
    private let stop: StopSignal
    private let ended: StopSignal

    /// `directory`: the archive's.
    package init(
        directory: String,
        settings: AlertSettings,
        fleet: Fleet,
        jobs: DeviceJobs,
        log: ServerLog
    ) throws {
        (self.directory, self.fleet, self.jobs, self.log) = (directory, fleet, jobs, log)
        channels = settings.channels
        stop = try StopSignal()
        ended = try StopSignal()
    }

    /// Starts the thread, which runs until `finish`; without a channel it only steps rollouts.
    package func start() throws {
        // With an old state, a later start would report long past changes.
        if channels.isEmpty { removeDatabase(AlertBook.path(in: directory)) }
        try startBackgroundThread("alerts") { [self] in
            run()
            ended.raise()
        }
    }

    /// Stops the thread and kills a running program; unsent alerts are sent after the next start.
    package func finish() {
        stop.raise()
        _ = ended.sleep(for: .seconds(2))
    }

    private func run() {
        let rollouts = RolloutDriver(
            jobs: jobs,
            clock: SystemClock(),
            look: fleet.look,
            log: log.warn
        )
        // Kept after a failure, because it knows which alerts were sent.
        var desk: AlertController?
        while !stop.isRaised {
            do {
                let current = channels.isEmpty ? nil : try desk ?? makeDesk()
                desk = current
                rollouts.round { try current?.add($0) }
                let pause = try current?.round(until: stop) ?? RolloutDriver.pause
                if pause > .zero { _ = stop.sleep(for: pause) }
            } catch {
                log.warn("alerts are delayed: \(error)")
                if let error = error as? SQLiteError, error.isDamage {
                    desk = nil
                    remake()
                }
                _ = stop.sleep(for: Self.pause)
            }
        }
    }

    private func makeDesk() throws -> AlertController {
        try AlertController(
            directory: directory,
            channels: channels,
            clock: SystemClock(),
            look: { [fleet] now in
                let (devices, note) = try fleet.look(at: now)
                return (devices.compactMap(\.state), note == nil)
            },
            log: log.warn
        )
    }

    /// Deletes the book and its state; current troubles then count as known.
    private func remake() {
        log.warn("\(AlertBook.path(in: directory)) is damaged and is created again")
        removeDatabase(AlertBook.path(in: directory))
    }
}
