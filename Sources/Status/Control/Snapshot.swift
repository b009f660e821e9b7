// The status snapshot on disk, shown when the daemon cannot be asked.
import CLinux
import Glibc
import Host
import Queue
import Records
package import Setup

/// Reads and writes the status snapshot.
package enum Snapshot {
    static let fileName = "status.json"

    /// Returns the daemon's last report, or an empty one, marked as critical, or as unknown without
    /// the right to ask.
    package static func report(
        _ configuration: Configuration,
        _ refusal: ControlError,
        version: String
    ) -> StatusReport {
        let last = read(configuration)
        var report = last ?? nothing(configuration, version: version)
        if report.deviceId.isEmpty {
            let kept = try? DeviceID.kept(in: configuration.stateDirectory)
            report.deviceId = kept ?? ""
            report.storage.databaseBytes = FileSpace.size(configuration.databasePath)
            report.storage.freeBytes = FileSpace.free(configuration.stateDirectory) ?? 0
        }
        report.daemon.running = refusal.isRunning
        if case .silent(_, let pid) = refusal, pid > 0 { report.daemon.pid = pid }
        let reported = CardFailures.read(in: configuration.runtimeDirectory)
        let card = reported.all(at: SystemClock().now())
        (report.state, report.reasons) = HealthRules.evaluate(report, HealthRules.Notes(card: card))
        report.state = .critical
        switch refusal {
        case .gone:
            let failure = StartErrorFile.read(in: configuration.runtimeDirectory)
            let index = min(1, report.reasons.count)
            failure.map { report.reasons.insert("the last start failed: \($0)", at: index) }
        case .noRight:
            report.state = .unknown
            // Reasons that are derived from an empty report mean nothing.
            report.reasons = ["no right to ask the daemon"] + (last == nil ? [] : report.reasons)
        case .silent: report.reasons.insert("daemon does not answer", at: 0)
        }
        return report
    }

    /// Returns whether a daemon left a report here, or why it did not start.
    package static func isThere(_ configuration: Configuration) -> Bool {
        read(configuration) != nil || StartErrorFile.read(in: configuration.runtimeDirectory) != nil
    }

    /// Returns the newest report that the daemon left in one of its directories.
    ///
    /// The one in the runtime directory is written on each tick, the one in the state directory
    /// only at a stop. Their times are not compared: the clock may have gone back with the last
    /// boot.
    private static func read(_ configuration: Configuration) -> StatusReport? {
        let directories = [configuration.runtimeDirectory, configuration.stateDirectory]
        for directory in directories {
            let path = "\(directory)/\(fileName)"
            guard let text = SmallText.read(path, limit: 1 << 20, followsLink: false),
                var report = StatusReport(json: Array(text.utf8))
            else { continue }
            for name in report.sources.keys { report.sources[name]?.state = .unknown }
            return report
        }
        return nil
    }

    /// Returns an empty report, for before the first start or without files; reads no disk.
    package static func nothing(_ configuration: Configuration, version: String) -> StatusReport {
        StatusReport(
            version: version,
            sources: Dictionary(
                uniqueKeysWithValues: SourceName.allCases.map { ($0.rawValue, .init()) }
            ),
            streams: Dictionary(
                uniqueKeysWithValues: StreamList().kinds.filter(\.isAlwaysShown)
                    .map { (configuration.wire(of: $0.stream), .init()) }
            )
        )
    }

    /// Replaces the snapshot atomically.
    package static func write(_ json: [UInt8], to directory: String, as name: String = fileName) {
        try? SmallFile.replace("\(directory)/\(name)", json, mode: 0o644, isSynced: false)
    }
}
