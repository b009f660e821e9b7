// The main thread of `waypost run`: signals and the service manager, and nothing that can hang.
import CLinux
import Glibc
package import Host

/// A gateway from its start to its end, as a process.
package final class GatewayRun {
    /// What a stop may take in all; systemd and people are promised 5 s.
    private static let stopLimit = Duration.milliseconds(4300)
    /// A start that takes longer is told by the control socket.
    private static let startLimit = Duration.seconds(5)

    private let settings: GatewaySettings
    private let clock: any HostClock
    private let service: ServiceManager
    private let signals: GatewaySignals
    /// Where the start is.
    private let life = Heartbeat()
    private let door: EarlyControlServer
    private let outcome = StateBox<Result<Gateway, any Error>?>(nil)
    private let hasStarted: Wakeup
    private var gateway: Gateway?

    package init(_ settings: GatewaySettings, clock: any HostClock = SystemClock()) throws {
        self.settings = settings
        self.clock = clock
        service = ServiceManager(environment: settings.environment)
        signals = try GatewaySignals()
        hasStarted = try Wakeup()
        door = try EarlyControlServer(settings, clock: clock, start: life)
    }

    /// Runs until SIGTERM or SIGINT; SIGHUP calls `reload` for a new configuration (it throws: the old one stays).
    ///
    /// `signals` is a descriptor of `waypost_take_signals`; `reload` is called on a thread of its own. False when
    /// some thread hangs that could not be ended: the process is to be left by `_exit`. Throws a Failure that names
    /// what a start lacks.
    @discardableResult package func run(
        signals descriptor: Int32,
        reload: @escaping @Sendable () throws -> Configuration
    ) throws -> Bool {
        try start(reload)
        var doorOpens: BootInstant? = clock.now() + Self.startLimit
        loop: while true {
            var entries = [
                PollEntry(descriptor), PollEntry(signals.isWell.descriptor),
                PollEntry(hasStarted.descriptor),
            ]
            _ = wait(for: &entries, timeout: doorOpens.map { max(.zero, $0 - clock.now()) })
            if let due = doorOpens, due <= clock.now() {
                doorOpens = nil
                openDoor()
            }
            if entries[2].isReady {
                doorOpens = nil
                try takeGateway()
            }
            if entries[1].isReady {
                signals.isWell.clear()
                service.notify("WATCHDOG=1")
            }
            switch waypost_next_signal(descriptor) {
            case SIGTERM, SIGINT: break loop
            case SIGHUP: signals.wantsReload.signal()
            default: continue
            }
        }
        service.notify("STOPPING=1")
        return try stop()
    }

    /// On a thread of its own: its disk may hang, and the main thread must still notice SIGTERM.
    private func start(_ reload: @escaping @Sendable () throws -> Configuration) throws {
        let (settings, clock, signals) = (settings, clock, signals)
        let (door, life, outcome, hasStarted) = (door, life, outcome, hasStarted)
        let thread = try OwnThread("start") {
            let result = Result<Gateway, any Error> {
                let gateway = try Gateway(
                    settings,
                    clock: clock,
                    signals: signals,
                    door: door,
                    life: life
                )
                try gateway.start(life, reload)
                return gateway
            }
            outcome.update { $0 = result }
            hasStarted.signal()
        }
        thread.detach()
    }

    /// On another thread, as all that touches files.
    ///
    /// If it fails, so does the start, which says why.
    private func openDoor() {
        let door = door
        try? OwnThread("door") { try? door.open() }.detach()
    }

    private func takeGateway() throws {
        hasStarted.clear()
        gateway = try outcome.value?.get()
        service.notify("READY=1")
    }

    private func stop() throws -> Bool {
        let deadline = clock.now() + Self.stopLimit
        if gateway == nil {
            var entries = [PollEntry(hasStarted.descriptor)]
            _ = wait(for: &entries, timeout: Self.stopLimit / 2)
            if entries[0].isReady { try takeGateway() }
        }
        guard let gateway else {
            settings.log.error("stopped in its start", ["in": "\(life.word.call)"])
            return false
        }
        let hasEnded = gateway.stop(by: deadline)
        settings.log.info("stopped", [:])
        return hasEnded
    }
}
