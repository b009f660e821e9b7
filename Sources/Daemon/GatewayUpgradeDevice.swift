// An upgrade from the server, on a running gateway of a Debian system.
import Glibc
import Host
import Records
import Remote
import Setup
import Status
import StatusBoard
import Upload

/// The files between the gateway and root's unit, waypost-upgrade.service.
struct UpgradePaths: Sendable {
    /// The gateway writes a version here, and the unit watches it.
    let request: String
    /// The program on trial writes its version here.
    let good: String
    /// The unit writes the result here.
    var result = "/var/lib/waypost-upgrade/result"
    /// The script that the unit runs.
    var script = "/usr/lib/waypost/upgrade"
    private let isWatched: Bool

    init(runtimeDirectory: String) {
        (request, good) = ("\(runtimeDirectory)/upgrade", "\(runtimeDirectory)/upgrade-good")
        isWatched = runtimeDirectory == "/run/waypost"
    }

    var obstacle: String? {
        guard isWatched else { return "runtime_directory is not /run/waypost, which root watches" }
        guard access(script, X_OK) != 0 else { return nil }
        return "this system has no \(script); install Waypost as a package of Debian"
    }
}

/// Asks root's unit for an upgrade, and observes the gateway in its trial.
struct GatewayUpgradeDevice: UpgradeDevice {
    /// A source that had a record this short a time ago must have one in the trial.
    private static let activity = Duration.seconds(120)
    /// The time between two uploads in a trial, which takes 10 minutes at most.
    private static let interval = Duration.seconds(60)
    private static let maxResult = 4096

    let gateway: GatewaySettingsDevice
    let paths: UpgradePaths

    var deviceID: String { gateway.deviceID }
    var version: String { gateway.context.version }
    var obstacle: String? { paths.obstacle }
    var newest: [String: Int64] { gateway.newest }
    var result: String? { SmallText.read(paths.result, limit: Self.maxResult) }

    func read() throws -> StoredUpgrade? { try StoredUpgrade.read(in: gateway.directory) }
    func write(_ stored: StoredUpgrade) throws { try stored.write(in: gateway.directory) }
    func request(_ version: String) throws { try Self.write(version, to: paths.request) }
    func declareGood(_ version: String) throws { try Self.write(version, to: paths.good) }
    func recordHealth(_ isOn: Bool) { gateway.context.isOnTrial.update { $0 = isOn } }
    func upload() { gateway.services.uploads?.uploader.sync { _ in } }
    func warn(_ what: String) { gateway.context.log.warning("upgrade", ["why": what]) }

    private static func write(_ version: String, to path: String) throws {
        try SmallFile.replace(path, Array("\(version)\n".utf8), mode: 0o644, isSynced: false)
    }

    func before() -> SettingsGate.Before {
        let names = SourceName.allCases.filter { gateway.condition($0) == .collects }
        let active = names.filter { gateway.isActive($0, within: Self.activity) }.map(\.rawValue)
        let interval = min(Self.interval, gateway.services.configuration.upload.interval)
        return SettingsGate.Before(
            healthy: names.map(\.rawValue),
            newest: newest.filter { name, _ in active.contains(name) },
            intervalMs: interval.milliseconds,
            newIntervalMs: interval.milliseconds,
            judgesUploads: false
        )
    }

    func observe(since: BootInstant, _ before: SettingsGate.Before) -> SettingsGate.Observation {
        var observation = gateway.observe(since: since, before, began: nil)
        // A window of the schedule that closed cannot be waited for.
        observation.sources = observation.sources.mapValues { $0 == .isNotDue ? .isOff : $0 }
        return observation
    }
}
