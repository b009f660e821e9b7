// The beacon source: a controller or a capture, from bytes to sightings in the queue.
package import Board
package import Host
package import Store

/// Where advertisements come from (contract, `beacons.source`).
package enum BeaconOrigin: Sendable, Equatable {
    /// `hciN`: an adapter of this machine.
    case adapter(Int)
    /// `h4:HOST:PORT`: a controller over TCP.
    case controller(host: String, port: UInt16)
    /// `btsnoop:PATH`, replayed at `speed` times the capture's own pace; 0: as fast as it goes.
    case capture(path: String, speed: Double)

    var name: String {
        switch self {
        case .adapter(let number): "hci\(number)"
        case .controller(let host, let port): "h4:\(host):\(port)"
        case .capture(let path, _): "btsnoop:\(path)"
        }
    }
}

/// What the beacon source needs to know.
package struct BeaconSettings: Sendable {
    package var origin: BeaconOrigin
    package var scan = ScanSettings()
    package var allow: [String] = []
    package var deny: [String] = []
    /// Sightings a second kept of each beacon.
    package var maxRate = 4.0
    /// Also keeps what no decoder knows.
    package var keepsUnknown = false

    package init(origin: BeaconOrigin) {
        self.origin = origin
    }
}

/// Hears beacons until it is told to stop, whatever the controller does meanwhile.
package final class BeaconAdapter: Sendable {
    private let settings: BeaconSettings
    private let accept: @Sendable (Sighting) -> Bool
    private let board: Publisher<SourceReport>
    private let clock: any HostClock

    package init(
        settings: BeaconSettings,
        board: Publisher<SourceReport>,
        clock: any HostClock,
        accept: @escaping @Sendable (Sighting) -> Bool
    ) {
        self.settings = settings
        self.accept = accept
        self.board = board
        self.clock = clock
    }

    /// Blocks until `stop` is raised; a controller that fails is tried again for ever.
    package func run(until stop: StopSignal) {
        var meter = SourceMeter(device: settings.origin.name, board: board)
        var intake = SightingIntake(settings)
        var retry = Retry()
        while !stop.isRaised {
            meter.loading()
            do {
                if case .capture(let path, let speed) = settings.origin {
                    return try replay(path, speed, &intake, &meter, until: stop)
                }
                try listen(&intake, &meter, &retry, until: stop)
            } catch {
                meter.failed((error as? Failure) ?? Failure("\(settings.origin.name): \(error)"))
                if case .capture = settings.origin { return }
            }
            guard !stop.isRaised, !stop.sleep(for: retry.next()) else { return }
            meter.restarted()
        }
    }

    private func connect(until stop: StopSignal) throws -> any HCILink {
        switch settings.origin {
        case .controller(let host, let port):
            do {
                return try H4Link(host: host, port: port, until: stop)
            } catch let error as ConnectError {
                throw Failure("h4:\(error); is the controller running?")
            }
        case .adapter(let number):
            return try KernelLink(adapter: number)
        case .capture(let path, _):
            throw Failure("\(path): a capture is no controller")
        }
    }

    private func listen(
        _ intake: inout SightingIntake,
        _ meter: inout SourceMeter,
        _ retry: inout Retry,
        until stop: StopSignal
    ) throws {
        let link = try connect(until: stop)
        let scanner = try Scanner(link, settings.scan, until: stop)
        defer { scanner.end(until: stop) }
        retry.succeeded()
        let mode = settings.scan.isActive ? "active" : "passive"
        meter.working(
            "\(mode) scan, \(scanner.isExtended ? "extended" : "legacy")",
            now: clock.now()
        )
        var parser = ReportParser()
        while !stop.isRaised {
            while let event = try link.receive() {
                take(event, &parser, &intake, &meter)
            }
            meter.update(clock.now())
            var entries = [PollEntry(link.descriptor), PollEntry(stop.descriptor)]
            _ = wait(for: &entries, timeout: meter.updateDelay(clock.now()))
        }
        meter.update(clock.now())
    }

    private func take(
        _ event: ArraySlice<UInt8>,
        _ parser: inout ReportParser,
        _ intake: inout SightingIntake,
        _ meter: inout SourceMeter
    ) {
        let malformed = parser.malformed
        let reports = parser.parse(event)
        if parser.malformed > malformed { meter.drop() }
        guard !reports.isEmpty else { return }
        let stamp = clock.stamp()
        for report in reports {
            intake.take(report, at: stamp) { sighting in
                if accept(sighting) { meter.admit(stamp) } else { meter.drop() }
            }
        }
    }

    private func replay(
        _ path: String,
        _ speed: Double,
        _ intake: inout SightingIntake,
        _ meter: inout SourceMeter,
        until stop: StopSignal
    ) throws {
        var file = try BtsnoopFile(path: path)
        var parser = ReportParser()
        let start = clock.now()
        var first: Int64?
        meter.working("replaying", now: start)
        while !stop.isRaised, let record = file.next() {
            let since = record.microseconds &- (first ?? record.microseconds)
            first = first ?? record.microseconds
            if speed > 0 {
                let due =
                    start + .milliseconds(Int64(min(1e12, max(0, Double(since) / 1000 / speed))))
                meter.update(clock.now())
                if due > clock.now(), stop.sleep(for: due - clock.now()) { break }
            }
            take(record.event, &parser, &intake, &meter)
            meter.update(clock.now())
        }
        guard !stop.isRaised else { return }
        meter.working(
            file.isTruncated ? "replay finished (the capture is cut short)" : "replay finished",
            now: clock.now()
        )
    }
}
