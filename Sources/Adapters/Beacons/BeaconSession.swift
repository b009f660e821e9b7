// One run of the source on a controller: listens, checks for silence, recovers, and retries
// failures.
import Host
import StatusBoard

/// The state of a run on a controller; used by the source's thread only.
struct BeaconSession {
    private let source: any RadioSource
    private let clock: any HostClock
    private let health: Wakeup
    private let stop: StopSignal
    private let reception: Reception
    private var recovery: SilenceRecovery
    private var interference = Interference()
    private var retry = Retry()
    /// A connection has succeeded since the last failure.
    private var isOpen = false
    /// The recovery step with which to open the next connection.
    private var step = SilenceRecovery.Step.restart

    init(
        source: any RadioSource,
        reception: Reception,
        clock: any HostClock,
        health: Wakeup,
        stop: StopSignal
    ) {
        self.source = source
        self.reception = reception
        self.clock = clock
        self.health = health
        self.stop = stop
        recovery = SilenceRecovery(at: clock.now())
    }

    /// Blocks until stopped.
    mutating func run() {
        while !stop.isRaised {
            // A working controller that is reopened does not show "loading": other programs may
            // cause that every few seconds.
            if !isOpen { reception.meter.loading() }
            do {
                try connect()
            } catch  where stop.isRaised {
                return
            } catch {
                // An adapter that was just there may be back already.
                let isAbsent = error is NoAdapterError && !isOpen
                isOpen = false
                if !isAbsent { step = recovery.failed(at: clock.now()) }
                reception.meter.failed(failure(error))
                // The monitor reports when a missing adapter appears; nothing can be retried
                // before.
                pause(isAbsent && source.watch != nil ? nil : retry.next())
            }
            if !stop.isRaised { reception.meter.restarted() }
        }
    }

    /// Connects and listens until the connection must be reopened.
    private mutating func connect() throws {
        reception.begin()
        let radio = try source.open(step, until: stop) { reception.receive($0) }
        isOpen = true
        step = .restart
        defer {
            if !radio.endsForAll || !interference.isTheirs { radio.end { reception.receive($0) } }
            reception.settle(radio.link)
        }
        try radio.start(until: stop) { reception.receive($0) }
        // Discards adapter changes that opening it caused.
        _ = source.watch?.changes()
        started(radio)
        try listen(to: radio)
    }

    /// Handles the start of our own scan.
    ///
    /// Earlier orders of other programs no longer matter, nor do unreadable reports: without
    /// beacons no good report would end that error.
    private mutating func started(_ radio: any Radio) {
        reception.meter.usable()
        _ = radio.link.takeForeignOrder()
        interference.started()
        recovery.started(at: clock.now())
    }

    private mutating func listen(to radio: any Radio) throws {
        reception.meter.working(detail(radio, clock.now()), now: clock.now())
        while !stop.isRaised {
            try hear(radio)
            let now = clock.now()
            reception.update(radio.link, now)
            if let order = radio.link.takeForeignOrder() { interference.saw(order, at: now) }
            // Reopens everything: the other program may be one to share the adapter with.
            if interference.isDue(at: now) { return }
            var entries = [radio.link.descriptor, stop.descriptor, health.descriptor].map {
                PollEntry($0)
            }
            if let watch = source.watch { entries.append(PollEntry(watch.descriptor)) }
            let delays = [reception.meter.updateDelay(now), interference.delay(now)].compactMap {
                $0
            }
            _ = stop.wait(for: &entries, timeout: delays.min())
            if entries.count > 3, entries[3].isReady { try look() }
            if entries[2].isReady, try evaluate(radio) { return }
        }
    }

    /// Handles all events that have arrived.
    private mutating func hear(_ radio: any Radio) throws {
        var saidAt = clock.now()
        // A controller that never pauses must not delay a stop or the board, nor look like a hang.
        while !stop.isRaised, let event = try radio.link.receive() {
            let now = clock.now()
            if now - saidAt >= .seconds(1) {
                stop.life.returns()
                saidAt = now
            }
            if reception.receive(event) {
                retry.succeeded()
                if recovery.heard(at: now) { reception.meter.working(detail(radio, now), now: now) }
            }
            reception.update(radio.link, now)
        }
    }

    /// Handles changes of the adapter; throws if it was removed or switched off.
    private func look() throws {
        for change in source.watch?.changes() ?? [] where change.adapter == source.adapter {
            switch change.kind {
            case .removed: throw NoAdapterError(name: source.name)
            case .down:
                throw Failure(
                    "\(source.name): it was switched off; it is switched on again (to leave it off, set beacons.enabled = false)"
                )
            case .added, .up: break
            }
        }
    }

    /// Checks for silence and applies the remedy; true when that is to reopen everything.
    private mutating func evaluate(_ radio: any Radio) throws -> Bool {
        health.clear()
        var now = clock.now()
        switch recovery.nextStep(at: now) {
        case nil: break
        case .restart:
            reception.meter.restarted()
            try radio.start(until: stop) { reception.receive($0) }
            started(radio)
        case .reset where radio.link.hasConnections, .reopen where radio.link.hasConnections:
            return true
        case .reset:
            reception.meter.restarted()
            try radio.reset(until: stop) { reception.receive($0) }
            _ = source.watch?.changes()
            started(radio)
        case .reopen:
            step = .reopen
            return true
        }
        now = clock.now()
        let detail = detail(radio, now)
        if detail != reception.meter.report.detail { reception.meter.working(detail, now: now) }
        return false
    }

    /// Describes the scan and anything unusual about it.
    private func detail(_ radio: any Radio, _ now: BootInstant) -> String {
        var detail = radio.detail
        if reception.truncated > 0 { detail += ", \(reception.truncated) reports cut short" }
        guard let silence = recovery.silence(at: now) else { return detail }
        detail += ", nothing heard for \(silence.components.seconds / 60) min"
        if recovery.isResting { return detail + ", the controller answers" }
        switch recovery.reached {
        case nil: return detail
        case .restart: return detail + ", scan restarted"
        case .reset: return detail + ", controller reset"
        case .reopen: return detail + ", controller reset and reopened"
        }
    }

    private func failure(_ error: any Error) -> Failure {
        if let failure = error as? Failure { return failure }
        let text = "\(error)"
        let named = text.hasPrefix(source.name) ? text : "\(source.name): \(text)"
        guard error is NoAnswerError || error is ScanError else { return Failure(named) }
        let step =
            recovery.failedStarts < 3
            ? "it is tried again, and reset"
            : "resets do not help; power it off and on"
        return Failure("\(named); \(step)")
    }

    /// Waits before the next attempt, or until the adapter arrives.
    ///
    /// nil waits until the adapter arrives or a health check is due.
    private func pause(_ delay: Duration?) {
        let timer = SystemClock()
        let end = delay.map { timer.now() + $0 }
        while !stop.isRaised {
            var entries = [PollEntry(stop.descriptor), PollEntry(health.descriptor)]
            if let watch = source.watch { entries.append(PollEntry(watch.descriptor)) }
            _ = stop.wait(for: &entries, timeout: end.map { max(.zero, $0 - timer.now()) })
            let hasArrived =
                source.watch?.changes().contains {
                    $0.adapter == source.adapter && ($0.kind == .added || $0.kind == .up)
                } ?? false
            if hasArrived { return }
            if entries[1].isReady {
                health.clear()
                if end == nil { return }
            }
            if let end, timer.now() >= end { return }
        }
    }
}
