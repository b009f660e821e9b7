// The status screen: judged by pending records, with nothing cut off silently.
import Foundation
import Host
import Testing

@testable import Daemon
@testable import Status

@Suite struct StatusScreenTests {
    private func report(_ change: (inout StatusReport) -> Void = { _ in }) -> StatusReport {
        StatusTests().report(change)
    }

    private func text(
        _ report: StatusReport,
        columns: Int = 80,
        scrolls: Bool = false
    ) -> String {
        StatusScreen(
            report,
            now: StatusTests.now,
            isColoured: false,
            columns: columns,
            scrolls: scrolls
        ).text
    }

    private func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    }

    @Test(arguments: [(61.9, "room for 61 days"), (1.5, "room for 36 h")])
    func room_isGivenInDaysOrHours(days: Double, expected: String) {
        let report = report { $0.storage.roomDays = days }
        #expect(text(report).contains(", \(expected), "))
        #expect(!text(self.report { $0.storage.roomDays = nil }).contains("room for"))
    }

    /// A report that no terminal has room for.
    private var long: StatusReport {
        let remedy =
            "this kernel has no Bluetooth; `sudo modprobe bluetooth hci_uart btusb`, then plug it in"
        let now = StatusTests.now
        var report = report { report in
            report.sources["beacons"]?.state = .error
            report.sources["beacons"]?.reason = "hci0: \(remedy)"
            report.streams["a-stream-with-a-name-that-is-long"] = report.streams["beacons"]
            report.streams["beacons"]?.lastError = .init(
                code: .network,
                message: "no route; \(remedy)",
                at: now
            )
            report.recentErrors = (0..<12).map {
                .init(code: .network, message: "\($0) \(remedy)", at: now, count: 1)
            }
        }
        report.reasons = (0..<6).map { "\($0): \(remedy)" }
        return report
    }

    /// Cut was what a person has to do: in `ssh site waypost status`, too.
    @Test func pipe_hasEverythingWhole_andTheVerdictLast() {
        let text = text(long, columns: .max, scrolls: true)
        #expect(!text.contains("…"))
        #expect(!text.contains("more: `waypost status --json`"))
        for reason in long.reasons { #expect(text.contains("  \(reason)\n")) }
        for error in long.recentErrors { #expect(text.contains("E001 \(error.message)\n")) }
        #expect(text.contains("a-stream-with-a-name-that-is-long        1"))
        let lines = lines(text)
        #expect(lines.first?.hasPrefix("waypost 1.0  degraded  ") == true)
        #expect(lines.last == lines.first)
    }

    @Test func terminal_cutsAtItsWidth_andRepeatsScrolledVerdict() {
        for columns in [30, 80, 120, 200] {
            let text = text(long, columns: columns, scrolls: true)
            #expect(lines(text).allSatisfy { $0.count <= columns })
            #expect(columns > 120 || lines(text).contains { $0.count > columns - 20 })
            #expect(lines(text).last == lines(text).first)
            let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            if columns >= 80 {
                for reason in long.reasons { #expect(words.contains(reason)) }
            }
        }
        let short = text(report(), columns: 80, scrolls: true)
        #expect(short.components(separatedBy: "waypost 1.0").count == 2)
        #expect(text(long, columns: 0, scrolls: true).contains("waypost"))
    }

    /// `status` cut the line just before why it does not connect.
    @Test func outputThatDoesNotConnect_saysWhyOnLinesOfItsOwn() {
        let why =
            "mqtts://homeassistant.local:8883: this client is not authorised; check "
            + "mqtt.username, mqtt.password_file and the broker's access list"
        let report = report {
            let error = StatusReport.ErrorAt(code: .server, message: why, at: StatusTests.now)
            $0.outputs = [
                "mqtt": .init(
                    state: "connecting",
                    peer: "mqtts://homeassistant.local:8883",
                    lastError: error
                )
            ]
        }
        let pipe = text(report, columns: .max, scrolls: true)
        #expect(
            pipe.contains(
                "mqtt      connecting to mqtts://homeassistant.local:8883: 0 sent, 0 dropped\n          E003 \(why)\n"
            )
        )
        let words = text(report).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("E003 \(why)"))
        #expect(!words.contains("…"))
    }

    /// Also while nothing is pending: a resend goes on over several syncs.
    @Test func recordsToBeSentAgain_areCountedOverAllStreams() {
        #expect(!text(report()).contains("resending"))
        let report = report { report in
            report.streams["a"] = report.streams["beacons"]
            report.streams["a"]?.resending = 90
            report.streams["beacons"]?.resending = 5
        }
        #expect(text(report).contains(" today, resending: 95 left\n"), "\(text(report))")
    }

    /// A record was refused and dropped: nothing is pending, and nothing can be done.
    @Test func errorOfAStream_thatNothingWaitsIn_isNoFailure() {
        let refused = StatusReport.ErrorAt(
            code: .server,
            message: "refused",
            at: StatusTests.now
        )
        let waiting = report { $0.streams["beacons"]?.lastError = refused }
        #expect(waiting.state == .degraded)
        #expect(waiting.reasons == ["uploads failing: refused"])
        let empty = report {
            $0.streams["beacons"]?.lastError = refused
            $0.streams["beacons"]?.pending = 0
        }
        #expect(empty.state == .healthy)
        #expect(empty.reasons == [])
    }

    /// The uploader has not tried yet: the last error is all that is known of the token.
    @Test func refusedToken_isCriticalAfterAStart_too() {
        let refused = StatusReport.ErrorAt(
            code: .tokenRefused,
            message: "the token",
            at: StatusTests.now
        )
        let report = report { $0.streams["beacons"]?.lastError = refused }
        #expect(report.state == .critical)
        #expect(report.reasons == ["token refused", "uploads failing: the token"])
    }

    @Test func screenThatHasNoRoom_saysHowMuchIsMissing() {
        var report = report { report in
            for number in 0..<20 { report.streams["s\(number)"] = report.streams["beacons"] }
        }
        report.reasons = ["one", "two", "three", "four", "five"]
        let screen = text(report)
        let lines = screen.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count == 24)
        #expect(lines.contains("  and 2 more: `waypost status --json`"))
        // Eight of 21 streams, a blank line, storage, clock and upload are not shown.
        #expect(lines.filter { $0.hasSuffix("  never     -") }.count == 13)
        #expect(lines.last == "… 12 more lines: `waypost status --json` has all")
    }

    @Test(arguments: [(59, "59 s ago "), (1380, "23 min "), (7199, "119 min ")])
    func age_isNeverCut(seconds: Int, age: String) {
        let report = report {
            $0.sources["beacons"]?.lastRecordAt = StatusTests.now + .seconds(-seconds)
            $0.streams["beacons"]?.lastSuccessAt = $0.sources["beacons"]?.lastRecordAt
        }
        let screen = text(report)
        let lines = screen.split(separator: "\n").filter { $0.hasPrefix("beacons") }
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.contains(" \(age)") })
    }

    /// The clock is behind after a time without power: the age is unknown.
    @Test func dateAheadOfTheClock_isNoUploadOfThisMoment() {
        let report = report {
            $0.streams["beacons"]?.lastSuccessAt = StatusTests.now + .seconds(8 * 3600)
        }
        let screen = text(report)
        let line = screen.split(separator: "\n").first {
            $0.hasPrefix("beacons") && $0.contains("  6  ")
        }
        #expect(line?.contains("unknown") == true)
        #expect(line?.contains("0 s ago") == false)
    }

    @Test func screen_staysWithin80By24_whateverIsInTheReport() {
        let long = String(repeating: "wörter und \u{1B}[31m\n", count: 40)
        let report = report { report in
            report.clock.contradiction = long
            for name in ["location", "audio"] { report.sources[name] = report.sources["beacons"] }
            report.sources["audio"]?.state = .error
            report.sources["audio"]?.reason = long
            for number in 0..<4 { report.streams[long + "\(number)"] = report.streams["beacons"] }
            report.streams["beacons"]?.lastError = .init(
                code: .network,
                message: long,
                at: StatusTests.now
            )
            report.disk = .card
            report.recentErrors = (0..<10).map {
                .init(code: nil, message: long, at: StatusTests.now + .seconds(-$0), count: 3)
            }
        }
        let screen = text(report)
        let lines = screen.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 24)
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect(!screen.contains("\u{1B}"))
    }

    /// The remedy follows the problem.
    @Test func screen_hasAReasonWhole_whereThereIsRoom() {
        let why =
            "corrupt database quarantined: /var/lib/waypost/queue.sqlite.corrupt-20261124T2130"
        let remedy = "120 records in it wait for upload, leave the file there until then"
        func screen(_ reasons: [String], errors: Int = 0) -> String {
            var report = report()
            report.reasons = reasons
            let now = StatusTests.now
            report.recentErrors = (0..<errors).map {
                .init(code: .network, message: "no route to host \($0)", at: now, count: 1)
            }
            return text(report)
        }
        let one = screen(["\(why); \(remedy)"])
        let words = one.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("\(why); \(remedy)"))
        let many = screen(Array(repeating: "\(why); \(remedy)", count: 6))
        #expect(many.contains("  and 2 more: `waypost status --json`\n"))
        #expect(!many.contains("…"))
        #expect(many.contains("upload    idle"))
        let failing = screen(Array(repeating: "\(why); \(remedy)", count: 6), errors: 3)
        #expect(failing.contains("upload    idle"))
        #expect(!failing.contains("…"))
    }

    /// A recent error ends with its remedy, too.
    @Test func screen_hasEachErrorWhole_orSaysThatItIsMissing() {
        let message = Array(repeating: "word", count: 40).joined(separator: " ") + "; unplug it"
        let report = report { report in
            let now = StatusTests.now
            report.recentErrors = (0..<10).map {
                .init(code: .network, message: "\($0) \(message)", at: now, count: 1)
            }
        }
        let screen = text(report)
        let words = screen.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("E001 0 \(message)"))
        #expect(words.hasSuffix("; unplug it and 7 more: `waypost status --json`"))
        #expect(screen.split(separator: "\n", omittingEmptySubsequences: false).count <= 25)
    }

    @Test func headline_fitsAfterMonths() {
        let report = report {
            $0.version = "0.1.0"
            $0.daemon.uptimeS = 100 * 86_400
            $0.daemon.rssBytes = 37_300_000
            $0.daemon.privateBytes = 15_700_000
            $0.daemon.cpuS = 123_456.78
        }
        let screen = text(report)
        let line = "waypost 0.1.0  healthy  up 100 d, 37.3 MB memory (15.7 MB private), 34 h CPU\n"
        #expect(screen.hasPrefix(line))
    }

    @Test func times_sayThatTheyAreUTC() {
        let screen = StatusScreen(
            report {
                $0.losses = [
                    .init(
                        stream: "audio",
                        kind: "gap",
                        records: 3,
                        from: StatusTests.now,
                        to: StatusTests.now + .seconds(3600)
                    )
                ]
                $0.recentErrors = [
                    .init(code: .network, message: "away", at: StatusTests.now, count: 1)
                ]
            },
            now: StatusTests.now,
            isColoured: false
        ).text
        #expect(screen.contains("3 of audio, gap, 2026-11-21 04:30 to 05:30 UTC\n"))
        #expect(screen.contains("errors (times in UTC)\n  04:30:07 E001 away\n"))
    }

    @Test func screen_saysTheStateInColourOnlyWhenAsked() {
        #expect(
            StatusScreen(report(), now: StatusTests.now, isColoured: true).text.contains(
                "\u{1B}[1;32mhealthy"
            )
        )
        let plain = StatusScreen(report(), now: StatusTests.now, isColoured: false).text
        #expect(
            plain.hasPrefix(
                "waypost 1.0  healthy  up 61 s, 16.7 MB memory (6.0 MB private), 0.5 s CPU\n"
            )
        )
        #expect(plain.contains("beacons   running   3 s ago      1.3        7  passive scan"))
        #expect(!plain.contains("disk "))
        let disk = StatusScreen(
            report { $0.disk = .card },
            now: StatusTests.now,
            isColoured: false
        )
        let line = "disk      mmcblk0 31.9 GB: 1.5 GB/day (1.1 GB ours), 5.8 years to 3.2 TB\n"
        #expect(disk.text.contains(line))
    }
}
