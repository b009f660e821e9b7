// The location source: connects to gpsd and turns its reports into fixes for the queue.
import Configuration
package import Host
package import Records
package import StatusBoard

/// Reads gpsd until stopped; reconnects forever.
package final class LocationAdapter: Source {
    /// Retry delays; a returned gpsd is found within 5 s.
    private static let retrySteps = [1, 2, 5].map { Duration.seconds($0) }

    private let settings: LocationSettings
    private let sink: any RecordSink
    private let board: Publisher<SourceReport>
    private let clock: any HostClock
    private let health: Wakeup

    package init(
        settings: LocationSettings,
        sink: any RecordSink,
        board: Publisher<SourceReport>,
        clock: any HostClock
    ) throws {
        self.settings = settings
        self.sink = sink
        self.board = board
        self.clock = clock
        health = try Wakeup()
    }

    /// Makes the source check whether gpsd has gone silent; call from any thread, about every 30 s.
    package func checkHealth() { health.signal() }

    /// Blocks until `stop` is raised.
    package func run(until stop: StopSignal) {
        var session = LocationSession(settings: settings, sink: sink, board: board)
        var retry = Retry(Self.retrySteps)
        while !stop.isRaised {
            do {
                var connection = try GPSDConnection(
                    host: settings.gpsd.host,
                    port: settings.gpsd.port,
                    until: stop
                )
                session.connected(clock.now())
                try follow(&connection, &session, until: stop)
            } catch {
                // An error caused by our own stop does not concern gpsd.
                if !stop.isRaised { session.failed(error) }
            }
            session.disconnected(clock.now())
            // A gpsd that only accepts and hangs up does not reset the backoff.
            if session.hasReported { retry.succeeded() }
            guard !stop.isRaised, !stop.sleep(for: retry.next()) else { break }
            session.restarted()
        }
        session.ended(clock.now())
    }

    /// Reads the connection until it must be reopened; throws when it ended.
    private func follow(
        _ connection: inout GPSDConnection,
        _ session: inout LocationSession,
        until stop: StopSignal
    ) throws {
        var lines = LineBuffer()
        while !stop.isRaised {
            var entries = [
                PollEntry(connection.descriptor), PollEntry(stop.descriptor),
                PollEntry(health.descriptor),
            ]
            _ = stop.wait(for: &entries, timeout: session.delay(clock.now()))
            lines.append(try connection.read())
            while let line = lines.next(limit: GPSDLine.limit) {
                receive(line, &connection, &session)
            }
            session.update(clock.now())
            if session.takeWish() { _ = connection.watch() }
            guard entries[2].isReady else { continue }
            health.clear()
            switch session.checkHealth(clock.now()) {
            case .none: break
            case .ask: _ = connection.watch()
            case .reconnect: return
            }
        }
    }

    private func receive(
        _ line: LineBuffer.Line,
        _ connection: inout GPSDConnection,
        _ session: inout LocationSession
    ) {
        let stamp = clock.stamp()
        guard let text = GPSDLine.text(line) else { return session.drop(stamp.boot) }
        guard !text.isEmpty else { return }
        let damaged = connection.damaged
        guard let (report, device) = connection.unpack(text) else {
            return session.drop(stamp.boot)
        }
        session.count(damaged: connection.damaged - damaged)
        session.receive(report, from: device, at: stamp)
    }
}
