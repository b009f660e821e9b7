// The control socket of a gateway; it opens before the gateway is ready if the start takes long.
import Glibc
import Host
import Queue
import Setup
import Status
import Upload

/// Answers `status` as soon as a start takes long, and all other commands once the gateway runs.
final class EarlyControlServer: Sendable {
    private struct State: Sendable {
        var inside: (any RunningGateway)?
        var plane: ControlPlane?
        /// Whether no other gateway has this socket.
        var isOurs = false
        /// Whether all parts of the gateway run.
        var isStarted = false
    }

    let status: StatusPublication
    private let configuration: Configuration
    private let state: StateBox<State>
    private let turn = Turn()

    /// `life` is the heartbeat of the start.
    init(_ settings: GatewaySettings, clock: any HostClock, start life: Heartbeat) throws {
        let state = StateBox(State())
        let starting = StartingReport(
            settings: settings,
            clock: clock,
            life: life,
            begun: clock.now()
        )
        self.state = state
        configuration = settings.configuration
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

    /// Records that this process holds the locks on the directories.
    func isOurs() { state.update { $0.isOurs = true } }

    /// Opens the socket, unless it is open already or may belong to another gateway.
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

    /// Hands over the queue and the actions: commands can be answered from now on.
    func enter(_ inside: any RunningGateway) { state.update { $0.inside = inside } }

    /// Records that all parts run.
    func hasStarted() { state.update { $0.isStarted = true } }
}

/// The actions of control commands on a running gateway; holds its parts, not the gateway.
struct GatewayActions: RunningGateway {
    let queue: Queue
    let services: Services
    let wantsReload: Wakeup
    let collector: @Sendable () -> StatusCollector
    let figures: @Sendable () -> GatewayFigures

    var configuration: Configuration { services.configuration }

    func sync(isOverBudget: Bool, _ done: @escaping @Sendable (SyncResult?) -> Void) {
        guard let uploader = services.uploads?.uploader else { return done(nil) }
        uploader.sync(isOverBudget: isOverBudget, done)
    }

    func reload() { wantsReload.signal() }

    func restart(_ source: SourceName) -> String? { services.restart(source) }
}

/// The report of a gateway that has not finished its start.
private struct StartingReport: Sendable {
    let settings: GatewaySettings
    let clock: any HostClock
    let life: Heartbeat
    let begun: BootInstant

    /// Adds to `report`, if there is one, what the start is waiting for; reads memory only.
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
        report.storage.state = .error
        report.reasons = ["the disk does not answer: nothing is collected yet"]
        return report
    }
}
