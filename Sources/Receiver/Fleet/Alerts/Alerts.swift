// Tells of devices that fall silent, come back, lose records or cannot go on.
import Glibc
import Host
import SQLite

/// How alerts are told.
package struct AlertSettings: Sendable {
    /// The path of a program; nil: none.
    package var command: String?
    /// An address of HTTP or HTTPS; nil: none.
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

/// A thread of its own: no gateway waits for it, and nothing that fails here refuses a batch.
final class Alerts: Sendable {
    /// Before what failed is tried again.
    private static let pause = Duration.seconds(30)

    private let directory: String
    private let channels: [AlertChannel]
    private let fleet: Fleet
    private let log: ServerLog
    private let stop: StopSignal
    private let ended: StopSignal

    /// `directory`: the archive's.
    init(directory: String, settings: AlertSettings, fleet: Fleet, log: ServerLog) throws {
        (self.directory, self.fleet, self.log) = (directory, fleet, log)
        channels = settings.channels
        stop = try StopSignal()
        ended = try StopSignal()
    }

    /// Looks and tells until `finish`; nothing where there is no way to tell.
    func start() throws {
        guard !channels.isEmpty else {
            // What was told long ago would be compared with what is then.
            removeBook()
            return ended.raise()
        }
        try startBackgroundThread("alerts") { [self] in
            run()
            ended.raise()
        }
    }

    /// A program that was started is ended, too; what was not told is told at the next start.
    func finish() {
        stop.raise()
        _ = ended.sleep(for: .seconds(2))
    }

    private func run() {
        // Of one that failed it is still known what was told.
        var desk: AlertController?
        while !stop.isRaised {
            do {
                let current = try desk ?? makeDesk()
                desk = current
                let pause = try current.round(until: stop)
                if pause > .zero { _ = stop.sleep(for: pause) }
            } catch {
                log.warn("alerts wait: \(error)")
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

    /// What was told is lost with the book, and what is wrong now is taken as known.
    private func remake() {
        log.warn("\(AlertBook.path(in: directory)) is damaged, and is made anew")
        removeBook()
    }

    private func removeBook() {
        let path = AlertBook.path(in: directory)
        for end in ["", "-journal"] { unlink(path + end) }
    }
}
