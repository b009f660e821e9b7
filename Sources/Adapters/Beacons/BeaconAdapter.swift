// The beacon source: turns a controller's or a capture's bytes into sightings for the queue.
package import Host
package import Records
package import StatusBoard

/// Receives advertisements until stopped; retries forever when the controller fails.
package final class BeaconAdapter: Source {
    private let settings: BeaconSettings
    private let sink: any RecordSink
    private let board: Publisher<SourceReport>
    private let clock: any HostClock
    /// Replaces the machine's radios in a test.
    private let radios: (@Sendable () -> any RadioSource)?
    private let health: Wakeup

    /// Creates the source without starting it.
    package convenience init(
        settings: BeaconSettings,
        sink: any RecordSink,
        board: Publisher<SourceReport>,
        clock: any HostClock
    ) throws {
        try self.init(settings: settings, sink: sink, board: board, clock: clock, radios: nil)
    }

    /// Creates a source whose radios come from `radios`, for tests.
    init(
        settings: BeaconSettings,
        sink: any RecordSink,
        board: Publisher<SourceReport>,
        clock: any HostClock,
        radios: (@Sendable () -> any RadioSource)?
    ) throws {
        self.settings = settings
        self.sink = sink
        self.board = board
        self.clock = clock
        self.radios = radios
        health = try Wakeup()
    }

    /// Wakes the source's thread, which checks for silence.
    ///
    /// Called by the gateway's health timer.
    package func checkHealth() { health.signal() }

    /// Blocks until `stop` is raised; a controller that fails is retried forever.
    package func run(until stop: StopSignal) {
        let name = settings.source.description
        let meter = SourceMeter(device: name, board: board)
        let reception = Reception(settings, sink, meter, clock: clock)
        if case .capture(let path) = settings.source {
            do {
                reception.meter.loading()
                try replay(path, settings.replaySpeed, reception, until: stop)
            } catch {
                reception.meter.failed((error as? Failure) ?? Failure("\(name): \(error)"))
            }
        } else if let source = radios?() ?? makeRadioSource() {
            var session = BeaconSession(
                source: source,
                reception: reception,
                clock: clock,
                health: health,
                stop: stop
            )
            session.run()
        }
        reception.settle(nil)
        reception.meter.flush(clock.now())
    }

    /// Returns the configured controller; nil for a capture.
    private func makeRadioSource() -> (any RadioSource)? {
        switch settings.source {
        case .adapter(let number):
            KernelRadioSource(
                adapter: number,
                settings: settings,
                warn: { [sink] in sink.warn($0) }
            )
        case .controller(let address): TCPRadioSource(address, scan: settings.scan)
        case .capture: nil
        }
    }

    /// In microseconds: a longer or negative pause means that the clock was set during the capture.
    private static let stepOfClock: Int64 = 86_400_000_000

    private func replay(
        _ path: String,
        _ speed: Double,
        _ reception: Reception,
        until stop: StopSignal
    ) throws {
        var file = try BtsnoopFile(path: path)
        var due = clock.now()
        var last: Int64?
        reception.meter.working("replaying", now: due)
        while !stop.isRaised, let record = stop.life.during("read", { file.next() }) {
            let since = record.microseconds &- (last ?? record.microseconds)
            last = record.microseconds
            if speed > 0, (0..<Self.stepOfClock).contains(since) {
                due = due + .nanoseconds(Int64(min(1e18, Double(since) * 1000 / speed)))
                if pause(until: due, reception, stop) { break }
            }
            if waitForRoom(reception, stop) { break }
            reception.receive(record.event)
            reception.update(nil, clock.now())
        }
        guard !stop.isRaised else { return reception.meter.flush(clock.now()) }
        reception.meter.working(
            file.isTruncated ? "replay finished (the capture is cut short)" : "replay finished",
            now: clock.now()
        )
    }

    /// Waits until the queue has room; returns true if stopped.
    ///
    /// Only a replay can wait; live reception would lose packets.
    private func waitForRoom(_ reception: Reception, _ stop: StopSignal) -> Bool {
        while !stop.isRaised, !sink.hasRoom {
            reception.update(nil, clock.now())
            // The writer stores thousands of records in this time.
            _ = stop.sleep(for: .milliseconds(5))
        }
        return stop.isRaised
    }

    /// Waits for the time of the next record and keeps the status board up to date; true when
    /// stopped.
    private func pause(
        until due: BootInstant,
        _ reception: Reception,
        _ stop: StopSignal
    ) -> Bool {
        while due > clock.now(), !stop.isRaised {
            let now = clock.now()
            reception.update(nil, now)
            let rest = due - now
            _ = stop.sleep(for: min(rest, reception.meter.updateDelay(now) ?? rest))
        }
        return stop.isRaised
    }
}
