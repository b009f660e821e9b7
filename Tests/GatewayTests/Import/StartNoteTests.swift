// The note waypost-ok.txt: what it says, when it is written, and what it does not touch.
import Foundation
import Host
import Setup
import Support
import Testing
import Upload

@testable import Field
@testable import Status

@Suite struct StartNoteTests {
    /// 2026-11-26T03:10:20Z.
    private let now = WallTime(milliseconds: 1_795_662_620_000)

    /// Returns the report of a gateway that has run for five minutes and is well.
    private func report(_ change: (inout StatusReport) -> Void = { _ in }) -> StatusReport {
        var report = StatusReport(version: "1", sources: [:], streams: [:])
        report.deviceId = "lake-7"
        report.state = .healthy
        report.daemon.uptimeS = 300
        report.clock.state = .synced
        let last = now + .seconds(-30)
        for (name, detail) in [
            ("beacons", "passive scan"), ("location", "3D fix, 9 satellites"),
            ("audio", "-41 dBFS"),
        ] {
            report.sources[name] = .init(state: .loaded, lastRecordAt: last, detail: detail)
        }
        report.sources["audio"]?.lastRecordAt = nil
        report.upload.state = .idle
        report.upload.lastSuccessAt = last
        change(&report)
        return report
    }

    @Test func goodStart_isSaidInPlainLines() {
        #expect(StartNote.isWhole(report(), at: now))
        let text = StartNote.text(report(), at: now)
        let lines = text.components(separatedBy: "\r\n")
        #expect(lines.first == "All is well: this device runs.")
        for line in [
            "Device:    lake-7", "Time:      2026-11-26 03:10 UTC",
            "Beacons:   last one at 03:09 UTC; passive scan",
            "Position:  last one at 03:09 UTC; 3D fix, 9 satellites", "Sound:     -41 dBFS",
            "Server:    accepted records at 03:09 UTC", "To upload: 0 records",
        ] {
            #expect(lines.contains(line), "\(text)")
        }
        #expect(text.utf8.count < 1024)
        #expect(!text.replacingOccurrences(of: "\r\n", with: "").contains("\n"))
    }

    private static let faults: [(change: @Sendable (inout StatusReport) -> Void, line: String)] = [
        ({ $0.sources["beacons"]?.lastRecordAt = nil }, "Beacons:   NONE yet; passive scan"),
        (
            {
                $0.sources["audio"]?.state = .error
                $0.sources["audio"]?.reason = "no microphone"
            }, "Sound:     does NOT work: no microphone"
        ),
        // The server accepted something before this start only.
        (
            { $0.daemon.uptimeS = 10 },
            "Server:    has NOT answered yet (idle)"
        ),
        ({ $0.sources["location"]?.state = .loading }, "Position:  NOT ready yet"),
    ]

    @Test(arguments: 0..<4) func whatIsMissing_isWaitedForAndSaid(number: Int) {
        let fault = Self.faults[number]
        let report = report(fault.change)
        #expect(!StartNote.isWhole(report, at: now))
        let lines = StartNote.text(report, at: now).components(separatedBy: "\r\n")
        #expect(lines.first == "This device runs, but not all is well.")
        #expect(lines.contains(fault.line), "\(lines)")
    }

    @Test func whatNeedsNoAnswer_isNotWaitedFor() {
        let report = report {
            $0.upload = .init()
            $0.upload.state = .noEndpoint
            $0.sources["audio"] = .init(state: .disabled)
        }
        #expect(StartNote.isWhole(report, at: now))
        let text = StartNote.text(report, at: now)
        #expect(text.contains("Server:    none is configured\r\n"))
        #expect(text.contains("Sound:     switched off in the configuration\r\n"))
    }

    @Test func textFromOutside_staysOnItsLine_andShort() {
        let report = report {
            $0.reasons = (0..<100).map {
                "\($0)\r\nAll is well: " + String(repeating: "x", count: 999)
            }
        }
        let text = StartNote.text(report, at: now)
        #expect(text.components(separatedBy: "\r\nAll is well").count == 1)
        #expect(text.contains("- and 92 more\r\n"))
        #expect(text.utf8.count < 4096)
    }

    @Test func okFile_replacesEarlierOne_andIsNotImported() throws {
        let device = try Device(card: "good-plain")
        try device.put("old", "waypost-ok.txt")
        let note = StartNote(on: device.card, device.paths)
        #expect(note.isPossible)
        try note.clear()
        #expect(device.text("card/waypost-ok.txt") == nil)
        try note.clear()
        try note.write(nil, at: now)
        #expect(device.text("card/waypost-ok.txt")?.hasPrefix("Waypost does NOT run") == true)
        try note.write(report(), at: now)
        #expect(device.text("card/waypost-ok.txt")?.hasPrefix("All is well") == true)
        // Beside a copy of all keys and the manual, as on the image.
        try device.put("[upload]\n", "waypost-all-keys.toml")
        try device.put("<html>", "waypost-manual.html")
        #expect(try device.start().problems == [])
        #expect(device.state[0] != nil)
    }

    /// A link on a file system that has links does not lead the service of root elsewhere.
    @Test func link_isReplacedAndNotFollowed() throws {
        let device = try Device(card: "good-plain")
        try device.folder.write("precious", to: "other")
        let link = device.card + "/waypost-ok.txt"
        try FileManager.default.createSymbolicLink(
            atPath: link,
            withDestinationPath: device.folder.path + "/other"
        )
        try StartNote(on: device.card, device.paths).write(report(), at: now)
        #expect(device.text("other") == "precious")
        #expect(device.text("card/waypost-ok.txt")?.hasPrefix("All is well") == true)
    }

    /// After going back to an older version: no terminal, and no reason anywhere.
    @Test func failedStart_isAddedToTheCardsErrors() throws {
        let device = try Device(card: "many-errors")
        try device.start()
        let before = try #require(device.text("card/waypost-errors.txt"))
        let why = "queue.sqlite: the database has schema version 2; install the newer Waypost again"
        var configuration = Configuration()
        configuration.stateDirectory = device.paths.state
        configuration.runtimeDirectory = device.paths.runtime
        StartErrorFile.write(why, configuration)
        let note = StartNote(on: device.card, device.paths)
        try note.write(report(), at: now)
        #expect(device.text("card/waypost-errors.txt") == before)
        try note.write(nil, at: now)
        let errors = try #require(device.text("card/waypost-errors.txt"))
        #expect(errors.hasPrefix(before))
        #expect(errors.contains("The gateway\r\n  what is wrong: it does not start: \(why)\r\n"))
    }

    @Test func cardThatIsNotMounted_isNotWrittenTo() throws {
        let device = try Device(card: "good-plain")
        try device.folder.write("LABEL=WAYPOST \(device.card) vfat noatime 0 2\n", to: "fstab")
        #expect(StartNote(on: device.card, device.paths).isPossible)
        device.isMounted = false
        #expect(!StartNote(on: device.card, device.paths).isPossible)
        #expect(!StartNote(on: device.card + "/nowhere", device.paths).isPossible)
    }
}
