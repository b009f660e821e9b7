// The control socket of a gateway, which is there before the gateway is when a start takes long.
import Glibc
import Host
import Queue

/// Answers `status` as soon as a start takes long, and all other commands once the gateway runs.
final class EarlyControlServer: Sendable {
    /// What the commands are answered from.
    struct Inside: Sendable {
        var queue: Queue
        var actions: ControlActions
        /// The report of now.
        var collector: @Sendable () -> StatusCollector
    }

    private struct State: Sendable {
        var inside: Inside?
        var plane: ControlPlane?
        /// No other gateway has this socket.
        var isOurs = false
        /// Its parts run.
        var isStarted = false
    }

    let status: StatusPublication
    private let configuration: Configuration
    private let state: StateBox<State>
    private let turn: Turn

    /// `life`: where the start is.
    init(_ settings: GatewaySettings, clock: any HostClock, start life: Heartbeat) throws {
        let state = StateBox(State())
        let starting = StartingReport(settings, clock: clock, start: life)
        self.state = state
        configuration = settings.configuration
        turn = try Turn()
        status = try StatusPublication(
            clock: clock,
            gather: { state.value.inside?.collector().gather() },
            compose: { figures, waiting in
                let now = state.value
                let report = now.inside?.collector().report(figures, waiting: waiting)
                return now.isStarted ? report ?? starting.report(nil) : starting.report(report)
            }
        )
    }

    var plane: ControlPlane? { state.value.plane }

    /// The lock on the state directory is held.
    func isOurs() { state.update { $0.isOurs = true } }

    /// Opens the socket, unless it is open, or may be another gateway's.
    func open() throws {
        try turn.take {
            guard state.value.isOurs, plane == nil else { return }
            try status.start()
            let state = state
            let plane = try ControlPlane(path: configuration.socketPath, status: status) {
                state.value.inside
            }
            state.update { $0.plane = plane }
        }
    }

    /// The queue is there: commands have something to ask.
    func enter(_ inside: Inside) { state.update { $0.inside = inside } }

    /// All parts run.
    func hasStarted() { state.update { $0.isStarted = true } }
}

/// What is told of a gateway that is not there yet.
private final class StartingReport: Sendable {
    let settings: GatewaySettings
    let clock: any HostClock
    let life: Heartbeat
    let begun: BootInstant

    init(_ settings: GatewaySettings, clock: any HostClock, start life: Heartbeat) {
        self.settings = settings
        self.clock = clock
        self.life = life
        begun = clock.now()
    }

    /// From memory alone; `report`: what can be told by then.
    func report(_ report: StatusReport?) -> StatusReport {
        let word = life.word
        let seconds = (clock.now() - word.since).milliseconds / 1000
        var report = report ?? nothing
        report.state = .critical
        report.reasons.insert(
            "\(StatusReport.starting)no answer for \(seconds) s, in \(word.call)",
            at: 0
        )
        return report
    }

    private var nothing: StatusReport {
        var report = Snapshot.nothing(settings.configuration, version: settings.version)
        report.daemon.running = true
        report.daemon.pid = Int(getpid())
        report.daemon.uptimeS = Int((clock.now() - begun).milliseconds / 1000)
        report.storage.state = "error"
        report.reasons = ["the disk does not answer: nothing is collected yet"]
        return report
    }
}
