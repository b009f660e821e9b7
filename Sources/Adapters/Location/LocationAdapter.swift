// The location source: gpsd's reports to fixes in the queue.
package import Board
package import Host
package import Store

/// What the location source needs to know.
package struct LocationSettings: Sendable {
    package var host: String
    package var port: UInt16
    /// At most one fix is kept in this time.
    package var interval: Duration
    /// Metres to move before another fix is kept.
    package var minDistance: Double

    package init(
        host: String,
        port: UInt16,
        interval: Duration = .seconds(10),
        minDistance: Double = 0
    ) {
        self.host = host
        self.port = port
        self.interval = interval
        self.minDistance = minDistance
    }
}

/// Follows gpsd until it is told to stop, reconnecting for ever.
package final class LocationAdapter: Sendable {
    /// Silence after which the connection is made anew.
    private static let silenceLimit = Duration.seconds(30)
    /// Time without a position report after which gpsd is asked again.
    private static let reportLimit = Duration.seconds(60)

    private let settings: LocationSettings
    private let accept: @Sendable (Fix) -> Bool
    private let onTime: @Sendable (Stamp) -> Void
    private let board: Publisher<SourceReport>
    private let clock: any HostClock

    /// `onTime` gets a boot time and the receiver's time then, at each fix that three in a row agree on.
    package init(
        settings: LocationSettings,
        board: Publisher<SourceReport>,
        clock: any HostClock,
        onTime: @escaping @Sendable (Stamp) -> Void = { _ in },
        accept: @escaping @Sendable (Fix) -> Bool
    ) {
        self.settings = settings
        self.board = board
        self.clock = clock
        self.onTime = onTime
        self.accept = accept
    }

    /// Blocks until `stop` is raised.
    package func run(until stop: StopSignal) {
        var session = Session(
            meter: SourceMeter(device: "\(settings.host):\(settings.port)", board: board),
            limit: FixLimit(interval: settings.interval, minDistance: settings.minDistance)
        )
        var retry = Retry()
        while !stop.isRaised {
            session.meter.loading()
            do {
                let connection = try GPSDConnection(host: settings.host, port: settings.port)
                try follow(connection, &session, until: stop)
            } catch {
                session.meter.failed((error as? Failure) ?? Failure("\(error)"))
            }
            // A gpsd that only accepts and hangs up is no success.
            if session.hasReported { retry.succeeded() }
            guard !stop.isRaised, !stop.sleep(for: retry.next()) else { break }
            session.meter.restarted()
        }
        session.meter.flush(clock.now())
    }

    /// Called by the health timer, on its thread; this source's own looks at the time by itself.
    package func checkHealth() {}

    /// What outlives one connection.
    private struct Session {
        var meter: SourceMeter
        var limit: FixLimit
        var merger = EpochMerger()
        var receiverTime = ReceiverTime()
        var satellites: Int?
        /// A position report came in this connection.
        var hasReported = false
        var heardAt = BootInstant(nanoseconds: 0)
        var reportedAt = BootInstant(nanoseconds: 0)
    }

    private func follow(
        _ connection: borrowing GPSDConnection,
        _ session: inout Session,
        until stop: StopSignal
    ) throws {
        var lines = LineSplitter()
        session.merger = EpochMerger()
        session.receiverTime = ReceiverTime()
        session.satellites = nil
        session.hasReported = false
        session.heardAt = clock.now()
        session.reportedAt = clock.now()
        session.meter.working("connected, no report yet", now: clock.now())
        while !stop.isRaised {
            var entries = [PollEntry(connection.descriptor), PollEntry(stop.descriptor)]
            _ = wait(for: &entries, timeout: delay(session))
            let overlong = lines.overlong
            var received: [[UInt8]] = []
            lines.append(try connection.read()) { received.append($0) }
            session.meter.drop(lines.overlong - overlong)
            for line in received { take(line, connection, &session) }
            let now = clock.now()
            if let fix = session.merger.flush(now: now) { keep(fix, &session) }
            session.meter.update(now)
            try checkSilence(connection, &session, now: now)
        }
    }

    /// Until the next thing that is due without a byte from gpsd.
    private func delay(_ session: Session) -> Duration {
        let now = clock.now()
        let due =
            [
                session.heardAt + Self.silenceLimit, session.reportedAt + Self.reportLimit,
                session.merger.deadline, session.meter.updateDelay(now).map { now + $0 },
            ].compactMap { $0 }.min() ?? now
        return max(.zero, due - now)
    }

    private func checkSilence(
        _ connection: borrowing GPSDConnection,
        _ session: inout Session,
        now: BootInstant
    ) throws {
        if now - session.heardAt >= Self.silenceLimit {
            throw Failure(
                "gpsd at \(settings.host):\(settings.port): silent for 30 s; is a receiver plugged in? `gpspipe -w -n 5`"
            )
        }
        guard now - session.reportedAt >= Self.reportLimit else { return }
        session.reportedAt = now
        _ = connection.watch()
    }

    private func take(
        _ line: [UInt8],
        _ connection: borrowing GPSDConnection,
        _ session: inout Session
    ) {
        let stamp = clock.stamp()
        session.heardAt = stamp.boot
        guard let (report, device) = connection.unpack(line) else { return session.meter.drop() }
        switch report {
        case .position(let position):
            session.reportedAt = stamp.boot
            session.hasReported = true
            describe(position, device, &session, now: stamp.boot)
            if let time = session.receiverTime.add(position, at: stamp) { onTime(time) }
            if let fix = session.merger.add(position, at: stamp) { keep(fix, &session) }
        case .sky(let used): session.satellites = used
        case .other: break
        }
    }

    private func describe(
        _ position: GPSReport.Position,
        _ device: String,
        _ session: inout Session,
        now: BootInstant
    ) {
        let satellites = session.satellites.map { ", \($0) satellites" } ?? ""
        let detail =
            switch position.mode {
            case 3: "3D fix\(satellites)"
            case 2: "2D fix\(satellites)"
            default: "no fix\(satellites)"
            }
        let address = "\(settings.host):\(settings.port)"
        let name = device.isEmpty ? address : "\(address) \(device)"
        let report = session.meter.report
        if report.detail != detail || report.device != name {
            session.meter.working(detail, device: name, now: now)
        }
    }

    private func keep(_ fix: Fix, _ session: inout Session) {
        guard session.limit.admits(fix) else { return }
        var fix = fix
        fix.satellites = session.satellites
        if accept(fix) { session.meter.admit(fix.stamp) } else { session.meter.drop() }
    }
}
