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
    /// Keys of encrypted BTHome devices, 16 bytes each.
    package var bindkeys: [BluetoothAddress: [UInt8]] = [:]
    /// Told once for each device whose readings cannot be had though it has a key, and why.
    package var tell: @Sendable (String) -> Void = { _ in }

    package init(origin: BeaconOrigin) {
        self.origin = origin
    }
}

/// Hears beacons until it is told to stop, whatever the controller does meanwhile.
package final class BeaconAdapter: Sendable {
    private let settings: BeaconSettings
    private let accept: @Sendable (Sighting) -> Bool
    private let hasRoom: @Sendable () -> Bool
    private let board: Publisher<SourceReport>
    private let clock: any HostClock

    /// `hasRoom` holds a replay back while it is false; a controller is never asked to wait.
    package init(
        settings: BeaconSettings,
        board: Publisher<SourceReport>,
        clock: any HostClock,
        hasRoom: @escaping @Sendable () -> Bool = { true },
        accept: @escaping @Sendable (Sighting) -> Bool
    ) {
        self.settings = settings
        self.accept = accept
        self.hasRoom = hasRoom
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
            } catch  where stop.isRaised {
                break
            } catch {
                meter.failed((error as? Failure) ?? Failure("\(settings.origin.name): \(error)"))
                if case .capture = settings.origin { return }
            }
            guard !stop.isRaised, !stop.sleep(for: retry.next()) else { break }
            meter.restarted()
        }
        meter.flush(clock.now())
    }

    /// Called by the health timer, on its thread; this source's own looks at the time by itself.
    package func checkHealth() {}

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
        defer { scanner.end() }
        retry.succeeded()
        let mode = settings.scan.isActive ? "active" : "passive"
        let detail = "\(mode) scan, \(scanner.isExtended ? "extended" : "legacy")"
        meter.working(detail, now: clock.now())
        var parser = ReportParser()
        var silence = SilenceWatch(since: clock.now())
        var overruns = 0
        while !stop.isRaised {
            // A controller that never pauses must not keep a stop or the board waiting.
            while !stop.isRaised, let event = try link.receive() {
                let isReport = take(event, &parser, &intake, &meter)
                let now = clock.now()
                if isReport, silence.ends(at: now) { meter.working(detail, now: now) }
                update(&meter, link, &overruns, now)
            }
            let now = clock.now()
            if silence.begins(at: now) {
                meter.working("\(detail), nothing heard for a minute", now: now)
            }
            update(&meter, link, &overruns, now)
            var entries = [PollEntry(link.descriptor), PollEntry(stop.descriptor)]
            let delays = [meter.updateDelay(now), silence.delay(now)].compactMap { $0 }
            _ = wait(for: &entries, timeout: delays.min())
        }
    }

    /// Tells the board what is owed; what the link lost is asked for only then.
    private func update(
        _ meter: inout SourceMeter,
        _ link: any HCILink,
        _ overruns: inout Int,
        _ now: BootInstant
    ) {
        guard let delay = meter.updateDelay(now), delay <= .zero else { return }
        let lost = link.overruns
        if lost > overruns { meter.drop(lost - overruns) }
        overruns = lost
        meter.update(now)
    }

    /// True when the event held a report.
    @discardableResult
    private func take(
        _ event: ArraySlice<UInt8>,
        _ parser: inout ReportParser,
        _ intake: inout SightingIntake,
        _ meter: inout SourceMeter
    ) -> Bool {
        let malformed = parser.malformed
        let reports = parser.parse(event)
        if parser.malformed > malformed { meter.drop(parser.malformed - malformed) }
        guard !reports.isEmpty else { return false }
        let stamp = clock.stamp()
        for report in reports {
            intake.take(report, at: stamp) { sighting in
                if accept(sighting) { meter.admit(stamp) } else { meter.drop() }
            }
        }
        return true
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
                if pause(until: due, &meter, stop) { break }
            }
            if waitForRoom(&meter, stop) { break }
            take(record.event, &parser, &intake, &meter)
            meter.update(clock.now())
        }
        guard !stop.isRaised else { return meter.flush(clock.now()) }
        meter.working(
            file.isTruncated ? "replay finished (the capture is cut short)" : "replay finished",
            now: clock.now()
        )
    }

    /// Waits until the queue can take more, which a capture can and the air cannot; true when stopped.
    private func waitForRoom(_ meter: inout SourceMeter, _ stop: StopSignal) -> Bool {
        while !stop.isRaised, !hasRoom() {
            meter.update(clock.now())
            // The writer takes thousands of records in this time.
            _ = stop.sleep(for: .milliseconds(5))
        }
        return stop.isRaised
    }

    /// Waits for the time of the next record, and tells the board meanwhile; true when stopped.
    private func pause(
        until due: BootInstant,
        _ meter: inout SourceMeter,
        _ stop: StopSignal
    ) -> Bool {
        while due > clock.now(), !stop.isRaised {
            let now = clock.now()
            meter.update(now)
            let rest = due - now
            _ = stop.sleep(for: min(rest, meter.updateDelay(now) ?? rest))
        }
        return stop.isRaised
    }
}

/// Notices when a scan has heard nothing for a while: broken, or a place without beacons.
struct SilenceWatch {
    static let limit = Duration.seconds(60)

    private var heardAt: BootInstant
    private var isSilent = false

    /// `since`: the start of the scan, which is no more suspicious than a report.
    init(since: BootInstant) {
        heardAt = since
    }

    /// A report came; true when it ends a silence.
    mutating func ends(at now: BootInstant) -> Bool {
        defer { isSilent = false }
        heardAt = now
        return isSilent
    }

    /// True once for each silence, when it has lasted long enough.
    mutating func begins(at now: BootInstant) -> Bool {
        guard !isSilent, now - heardAt >= Self.limit else { return false }
        isSilent = true
        return true
    }

    /// Until there may be something to notice; nil in a silence.
    func delay(_ now: BootInstant) -> Duration? {
        isSilent ? nil : max(.zero, heardAt + Self.limit - now)
    }
}
