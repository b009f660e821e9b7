// A simulated device with the real checks, trial and gate of settings from the server.
import Audio
import Beacons
import Configuration
import Foundation
import Host
import JSON
import Location
import Queue
import QueueSupport
import Records
import Schedule
import Setup
import Status
import StatusBoard
import Support

@testable import Daemon
@testable import Remote
@testable import Upload

/// Sources and uploads behave as the configuration in force says; time passes by steps.
final class FleetDevice: SettingsDevice {
    private static let start = Stamp(
        boot: BootInstant(nanoseconds: 3_600_000_000_000),
        wall: WallTime(rfc3339: "2026-06-01T09:00:00Z") ?? .release
    )
    static let id = "hut-1"

    private let folder: TemporaryFolder
    private let path: String
    private let clock = ManualClock(FleetDevice.start)
    private let queue: Queue
    private let services: Services
    private let real: GatewaySettingsDevice
    private let stored = Locked(StoredSettings())
    private let newest = Locked([String: Int64]())
    private let upload = Locked(UploadReport())
    private let attempt = Locked(FleetDevice.start)
    private let recorded = Locked([String: BootInstant]())
    /// The network or the server is down.
    private let isOut = Locked(false)

    /// `text`: the device's own file.
    init(_ folder: TemporaryFolder, _ text: String) throws {
        let path = "\(folder.path)/waypost.toml"
        let all = "device_id = \"\(Self.id)\"\nstate_directory = \"\(folder.path)\"\n\(text)"
        try Data((all + "\n[remote]\nallow = [\"settings\"]\n").utf8)
            .write(to: URL(fileURLWithPath: path))
        let queue = try folder.queue(clock: clock)
        let (board, log) = (GatewayBoard(), Log(level: .error))
        let context = ServiceContext(
            queue: queue,
            board: board,
            budget: DayBudget(queue, clock: clock),
            clock: clock,
            clockWatch: try ClockMonitor(queue: queue, clock: clock) { _ in true },
            schedule: try SourceSchedule(queue, board, clock: clock, log: log),
            deviceID: Self.id,
            version: "test",
            environment: [:],
            log: log,
            sound: try AudioTap()
        )
        services = Services(context, try Self.load(path, nil)) {}
        real = GatewaySettingsDevice(
            context: context,
            services: services,
            wantsReload: try Wakeup(),
            directory: folder.path,
            trying: { try Self.load(path, $0) }
        )
        (self.folder, self.path, self.queue) = (folder, path, queue)
        // Something waits to be uploaded.
        queue.accept(Event(.clockSynced, source: "test", stamp: clock.stamp()))
        try queue.flushed()
        for _ in 0..<20 { live(.seconds(60)) }
    }

    func close() { queue.close() }

    private static func load(_ path: String, _ version: StoredSettings.Version?) throws
        -> Configuration
    {
        try Configuration.load(path: path, environment: [:], trying: version).values
    }

    // MARK: Events on it

    func live(_ span: Duration) {
        clock.advance(by: span)
        let configuration = services.configuration
        _ = real.context.schedule.look(configuration)
        for name in SourceName.allCases { collect(name, configuration) }
        send(configuration)
    }

    private func collect(_ name: SourceName, _ configuration: Configuration) {
        let board = real.context.board
        let isOn =
            switch name {
            case .beacons: configuration.beacons.isEnabled
            case .location: configuration.location.isEnabled
            case .audio: configuration.audio.isEnabled
            }
        board.resting.update { $0[name] = isOn ? nil : "disabled" }
        guard isOn else { return }
        let now = clock.stamp()
        if board.schedule.state.value?.off[name] == nil, isHeard(name, configuration) {
            newest.update { $0[name.rawValue, default: 0] += 1 }
            recorded.update { $0[name.rawValue] = now.boot }
        }
        var report = SourceReport(device: "simulated")
        report.lastRecordAt = recorded.value[name.rawValue].map { now.advanced(by: $0 - now.boot) }
        board.sources[name]?.loaded(report)
    }

    /// Whether anything passes the filters: a place with birds, beacons and a moving device.
    private func isHeard(_ name: SourceName, _ configuration: Configuration) -> Bool {
        switch name {
        case .beacons:
            let beacons = configuration.beacons
            let isAllowed = beacons.allow.isEmpty || beacons.allow.contains("*")
            return isAllowed && !beacons.deny.contains("*")
        case .location:
            let last = recorded.value[name.rawValue].map { clock.now() - $0 } ?? .days(30)
            return last >= configuration.location.interval
                && configuration.location.minDistance < 1000
        case .audio: return configuration.audio.minimumLevel ?? -120 < -20
        }
    }

    private func send(_ configuration: Configuration) {
        let now = clock.stamp()
        let isDue = now.boot - attempt.value.boot >= configuration.upload.interval
        upload.update { report in
            report.phase = .idle
            if configuration.upload.quiet?.left(at: now.wall) != nil {
                report.phase = .quietHours
            } else if isDue {
                attempt.update { $0 = now }
                var stream = StreamUpload()
                if isOut.value {
                    let failure = Failure("no route to host", code: .network)
                    stream.lastError = TimedFailure(failure: failure, at: now)
                } else {
                    report.lastSuccessAt = now
                }
                report.streams[.events] = stream
            }
        }
        real.context.board.upload.loaded(upload.value)
    }

    // MARK: Settings

    /// Offers a version; returns what the device answers at last, and the time until then.
    ///
    /// `outage`: the time from the start of the trial in which nothing can be uploaded.
    func answer(
        to text: String,
        version: Int64,
        outage: Duration = .zero,
        limit: Duration = .days(2)
    ) -> (state: String, why: String, passed: Duration) {
        let begin = clock.now()
        var trial = SettingsTrial(self, clock)
        let members: [String: JSONValue] = [
            "version": .number("\(version)"), "for": .text(Self.id), "text": .text(text),
        ]
        do {
            guard let offer = SettingsOffer(members) else { return ("refused", "malformed", .zero) }
            let before = try trial.check(offer, key: nil)
            try trial.begin(offer, job: "job-\(version)", before, at: clock.wall())
        } catch {
            return ("refused", "\(error)", .zero)
        }
        while stored.value.state == .trial, clock.now() - begin < limit {
            isOut.update { $0 = clock.now() - begin < outage }
            live(isOut.value ? .seconds(600) : SettingsTrial.pause)
            trial.observe()
        }
        let outcome = stored.value.outcome
        return (outcome?.state ?? "", outcome?.message ?? "", clock.now() - begin)
    }

    var deviceID: String { Self.id }
    var applied: Int64? { real.applied }

    func prepare(_ version: StoredSettings.Version) throws -> SettingsGate.Before {
        var before = try real.prepare(version)
        before.newest = newest.value.filter { before.healthy.contains($0.key) }
        return before
    }

    func observe(since: BootInstant, _ before: SettingsGate.Before, began: WallTime?)
        -> SettingsGate.Observation
    {
        var observation = real.observe(since: since, before, began: began)
        observation.newest = newest.value
        return observation
    }

    func read() throws -> StoredSettings { stored.value }
    func write(_ new: StoredSettings) throws { stored.update { $0 = new } }

    func reload() {
        let version = stored.value.current
        guard let configuration = try? Self.load(path, version) else { return }
        services.state.update { $0.configuration = configuration }
    }

    func publish(_ stored: StoredSettings) {}
    func warn(_ what: String) {}
}
