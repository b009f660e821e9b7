// The files written at each health tick, and the reports of failures to write them.
import Foundation
import Host
import Support
import Testing

@testable import Daemon
@testable import Field
@testable import Setup
@testable import Status

@Suite struct HealthFilesTests {
    /// Other errors must stay in the list, which holds the newest ten.
    @Test func unwritableMetrics_areReportedOnce() throws {
        let folder = TemporaryFolder()
        let errors = ErrorLog()
        let files = HealthFiles(folder.path, errors: errors, log: Log(level: .error))
        let report = Snapshot.nothing(Configuration(), version: "test")
        let path = folder.path + "/missing/waypost.prom"
        for _ in 0..<3 { files.write(path, of: report, at: SystemClock().stamp()) }
        #expect(
            errors.entries.map(\.failure.message) == [
                "metrics.textfile open \(path): No such file or directory (errno 2)"
            ]
        )
        #expect(errors.entries.first?.count == 1)
    }

    /// As after a boot without a network: the clock goes back to before the last stop.
    @Test func snapshotOfThisBoot_isShown_whateverTheClockSays() throws {
        let folder = TemporaryFolder()
        var configuration = Configuration()
        configuration.stateDirectory = folder.path + "/state"
        configuration.runtimeDirectory = folder.path + "/run"
        for (directory, version) in [
            (configuration.runtimeDirectory, "of this boot"),
            (configuration.stateDirectory, "of the last stop"),
        ] {
            let files = FileManager.default
            try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
            let report = Snapshot.nothing(configuration, version: version)
            Snapshot.write(report.json, to: directory)
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1000)],
            ofItemAtPath: configuration.runtimeDirectory + "/status.json"
        )
        let shown = Snapshot.report(configuration, .gone(path: ""), version: "unknown")
        #expect(shown.version == "of this boot")
    }

    /// `status` had no reason, and only the journal knew.
    @Test func failedStart_isInStatusDoctorAndLED_untilASuccess() throws {
        let folder = TemporaryFolder()
        var configuration = Configuration()
        configuration.stateDirectory = folder.path
        configuration.runtimeDirectory = folder.path
        configuration.led = "user"
        let refusal = ControlError.gone(path: "")
        #expect(!Snapshot.isThere(configuration))
        StartErrorFile.write("queue.sqlite: schema version 2\nmove it away", configuration)
        #expect(Snapshot.isThere(configuration))
        let failure = "queue.sqlite: schema version 2; move it away"
        let shown = Snapshot.report(configuration, refusal, version: "1")
        #expect(shown.state == .critical)
        #expect(
            shown.reasons.prefix(2) == ["daemon not running", "the last start failed: \(failure)"]
        )
        let input = DoctorInput(configuration, environment: [:], version: "test")
        #expect(
            ServiceCheck(input: input).findings.first?.what
                == "not running: the last start failed: \(failure)"
        )
        let led = LEDFile(runtimeDirectory: folder.path).read()
        #expect(led?.pattern == .critical)
        #expect(led?.name == "user")
        StartErrorFile.clear(in: folder.path)
        #expect(!Snapshot.isThere(configuration))
        // Another gateway works there: the failure is of a second one, started by hand.
        let lock = try Process.started(
            "/usr/bin/flock",
            ["-F", folder.path, "sleep", "600"]
        )
        defer { lock.killAndWait() }
        try waitUntil("the lock") { DaemonPresence(stateDirectory: folder.path) != .gone }
        StartErrorFile.write("another waypost runs", configuration)
        #expect(!Snapshot.isThere(configuration))
    }

    /// Somebody who may not ask knows nothing; that is not a device that is down.
    @Test(arguments: [false, true])
    func withoutTheRightToAsk_theStateIsUnknown(hasReport: Bool) throws {
        let folder = TemporaryFolder()
        var configuration = Configuration()
        configuration.stateDirectory = folder.path + "/state"
        configuration.runtimeDirectory = folder.path
        if hasReport {
            var report = Snapshot.nothing(configuration, version: "1")
            report.clock.state = .unsynced
            Snapshot.write(report.json, to: folder.path)
        }
        let refusal = ControlError.noRight(path: "", isRunning: nil)
        let shown = Snapshot.report(configuration, refusal, version: "1")
        #expect(shown.state == .unknown)
        #expect(shown.state.exitStatus == 2)
        let last = hasReport ? ["clock not synced since this boot"] : []
        #expect(shown.reasons == ["no right to ask the daemon"] + last)
        #expect(String(decoding: shown.json, as: UTF8.self).contains(#""state":"unknown""#))
    }
}
