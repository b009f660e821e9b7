// The main thread of `waypost run`, which handles signals and the service manager and never hangs.
import CLinux
import Glibc
package import Host
package import Setup
import Status

/// A gateway as a process, from its start to its end.
package final class GatewayRun {
    /// The time limit for a whole stop; the documentation promises 5 s.
    private static let stopLimit = Duration.milliseconds(4300)
    /// The time after which the control socket reports a slow start.
    private static let startLimit = Duration.seconds(5)

    private let settings: GatewaySettings
    private let clock: any HostClock
    private let service: ServiceManager
    private let signals: GatewaySignals
    /// The heartbeat of the start.
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

    /// Runs until SIGTERM or SIGINT; SIGHUP calls `reload` on a separate thread.
    ///
    /// If `reload` throws, the old configuration stays. `signals` is a descriptor of
    /// `waypost_take_signals`. Returns false if a thread hangs and could not be stopped: the caller
    /// must then leave the process by `_exit`. Throws the error of a start that failed.
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
                try startGateway()
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

    /// Starts the gateway on a separate thread: its disk may hang, and SIGTERM must still work.
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

    /// Opens the control socket on another thread, like everything that touches files.
    ///
    /// If it fails, the start fails too and says why.
    private func openDoor() {
        let door = door
        try? OwnThread("door") { try? door.open() }.detach()
    }

    private func startGateway() throws {
        hasStarted.clear()
        gateway = try outcome.value?.get()
        StartErrorFile.clear(in: settings.configuration.runtimeDirectory)
        service.notify("READY=1")
    }

    private func stop() throws -> Bool {
        let deadline = clock.now() + Self.stopLimit
        if gateway == nil {
            var entries = [PollEntry(hasStarted.descriptor)]
            _ = wait(for: &entries, timeout: Self.stopLimit / 2)
            if entries[0].isReady { try startGateway() }
        }
        guard let gateway else {
            settings.log.error("stopped during the start", ["in": "\(life.word.call)"])
            return false
        }
        let hasEnded = gateway.stop(by: deadline)
        settings.log.info("stopped", [:])
        return hasEnded
    }
}
