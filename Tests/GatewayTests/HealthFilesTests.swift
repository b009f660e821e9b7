// The files written at each health tick, and the reports of failures to write them.
import Foundation
import Host
import Support
import Testing

@testable import Daemon
@testable import Setup
@testable import Status

@Suite struct HealthFilesTests {
    /// Other errors must stay in the list, which holds the newest ten.
    @Test func metricsThatCannotBeWritten_areToldOnce() throws {
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
    @Test func snapshotOfThisBoot_isTheOneThatIsShown_whateverTheClockSaid() throws {
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
}
