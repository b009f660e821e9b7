// A real gateway whose schedule opens and closes a microphone within seconds.
import Foundation
import Support
import Testing

@Suite struct ScheduleSystemTests {
    /// A device whose microphone gives a ramp in real time (Tests/FieldFaults/soundfaults.c).
    private final class Recorder: Device {
        init() throws {
            try super.init()
            try useRampMicrophone()
        }

        /// Sets what the microphone does (`struct control` of soundfaults.c).
        func setMicrophone(mode: UInt8) throws {
            let file = URL(fileURLWithPath: folder + "/mic-control")
            let handle = try FileHandle(forWritingTo: file)
            try handle.write(contentsOf: Data([mode]))
            try handle.close()
        }

        func waitUntilAudio(is state: String) throws {
            try waitUntil("\(state)") { try source("audio")["state"] as? String == state }
        }

        /// Whether the gateway has the microphone open.
        var isOpen: Bool {
            let files = "/proc/\(daemon?.processIdentifier ?? 0)/fd"
            let numbers = (try? FileManager.default.contentsOfDirectory(atPath: files)) ?? []
            return numbers.contains {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: files + "/" + $0))
                    == folder + "/mic-control"
            }
        }
    }

    private func time(_ record: [String: Any], _ key: String) throws -> Double {
        try milliseconds(try #require(record[key] as? String)) / 1000
    }

    @Test func dutyCycle_opensDevice_andRecordsExactWindows() throws {
        let device = try Recorder()
        try device.configure(
            """
            [audio]
            device = "mic"
            codec = "wav"
            chunk = "4s"
            duty = "5s/15s"
            """
        )
        try device.start()
        for _ in 0..<2 {
            try waitUntil("a closed window") {
                try device.source("audio")["state"] as? String == "scheduled_off"
            }
            let source = try device.source("audio")
            let reason = try #require(source["reason"] as? String)
            #expect(reason.hasPrefix("off until ") && reason.contains(" UTC (5s/15s)"))
            try waitUntil("a closed device") { !device.isOpen }
            let status = try device.run("status").output
            #expect(status.contains("off       "))
            // It is not a reason to be degraded.
            #expect(!status.contains("audio: "), "\(status)")
            try waitUntil("an open device") { device.isOpen }
            try waitUntil("an open window") {
                try device.source("audio")["state"] as? String == "loaded"
            }
        }
        try waitUntil("a closed window") {
            try device.source("audio")["state"] as? String == "scheduled_off"
        }
        #expect(try device.stop() == 0)
        let records = try records("linux_alsa_audio", of: device)
        // Of the window that was open at the start, only the last part was recorded.
        let starts = try records.filter { $0["overlap_duration"] as? Double == 0 }
            .map { try time($0, "timestamp_start").truncatingRemainder(dividingBy: 15) }
        #expect(starts.count >= 2)
        #expect(starts.suffix(2).allSatisfy { abs($0) < 0.1 || abs($0 - 15) < 0.1 }, "\(starts)")
        let ends = try records.map {
            try time($0, "timestamp_end").truncatingRemainder(dividingBy: 15)
        }
        #expect(ends.allSatisfy { $0 < 5.1 }, "\(ends)")
        #expect(ends.count { abs($0 - 5) < 0.1 } >= 2, "\(ends)")
        let events = try device.run("export", "waypost_events").output
        for kind in ["gap", "source_lost", "source_recovered"] {
            #expect(!events.contains("\"kind\":\"\(kind)\""), "\(events)")
        }
        try checkEffort(of: device)
    }

    /// Returns the spans of audio in the account, with the second at which each begins.
    private func effort(of device: Device) throws -> [(state: String, from: Double)] {
        var spans = try records("waypost_effort", of: device)
            .filter { $0["source"] as? String == "audio" }
            .map { ($0["state"] as? String ?? "", try time($0, "from")) }
        // Without a synced clock all wait there.
        let memo = try device.effortMemo().split(separator: "\n").map { $0.split(separator: " ") }
        for words in memo.drop(while: { $0[0] != "audio" }).dropFirst() {
            spans.append((String(words[3]), try #require(Double(words[2])) / 1000))
            if words[3] == "scheduled_off" { #expect(words.last == "audio.schedule") }
        }
        return spans
    }

    /// Checks that the effort of audio follows the windows of five seconds, until the stop.
    private func checkEffort(of device: Device) throws {
        let spans = try effort(of: device)
        #expect(spans.count >= 4 && spans.last?.0 == "off", "\(spans)")
        for (span, next) in zip(spans, spans.dropFirst()) where next.0 != "off" {
            let end = next.1.truncatingRemainder(dividingBy: 15)
            switch span.0 {
            case "recorded": #expect(abs(end - 5) < 0.1, "\(spans)")
            case "scheduled_off": #expect(abs(end) < 0.1 || abs(end - 15) < 0.1, "\(spans)")
            default: Issue.record("\(spans)")
            }
        }
    }

    /// The device is opened two seconds before each window.
    @Test func absentMicrophone_failsInItsWindows_andNotBefore() throws {
        let device = try Recorder()
        try device.setMicrophone(mode: 4)
        let file = Tree.path("Tests/Fixtures/schedule/effort-prelead.toml")
        try device.configure(String(contentsOfFile: file, encoding: .utf8))
        try device.start()
        for state in ["scheduled_off", "error", "scheduled_off", "error", "scheduled_off"] {
            try device.waitUntilAudio(is: state)
        }
        try device.setMicrophone(mode: 0)
        try device.waitUntilAudio(is: "loaded")
        try device.waitUntilAudio(is: "scheduled_off")
        #expect(try device.stop() == 0)
        let spans = try effort(of: device).dropFirst()
        let words = spans.map { span in
            "\(span.state) \(Int(span.from.rounded()) % 10) \(abs(span.from - span.from.rounded()) < 0.1)"
        }
        // How many windows fail depends on when the program was started.
        let (failed, off) = ("failed 0 true", "scheduled_off 5 true")
        let whole = words.drop { $0 != failed }.dropLast()
        #expect(whole.suffix(2) == ["recorded 0 true", off], "\(spans)")
        let failures = Array(whole.dropLast(2))
        #expect(!failures.isEmpty && failures.count % 2 == 0, "\(spans)")
        #expect(zip(failures, [failed, off, failed, off, failed, off]).allSatisfy(==), "\(spans)")
    }

    private func records(_ stream: String, of device: Device) throws -> [[String: Any]] {
        try device.run("export", stream).output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    @Test func schedule_isPrinted_andNeverOpeningWindowsReported() throws {
        let device = try Device(
            """
            [location]
            enabled = false
            fixed = "46.46,6.84"
            [audio]
            schedule = ["sunrise-1h..sunrise+3h", "22:00..23:30"]
            duty = "1m/10m"
            """
        )
        let text = try device.run("schedule", "--days", "2")
        #expect(text.status == 0, "\(text.error)")
        #expect(text.output.contains("sunrise-1h..sunrise+3h, 22:00..23:30; 1m/10m"))
        #expect(text.output.contains("22:00-23:30"))
        #expect(text.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text.output)")
        let json = try device.run("schedule", "--json", "--days", "2").output
        let listing = try #require(
            try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        )
        let audio = try #require((listing["sources"] as? [String: [String: Any]])?["audio"])
        #expect((audio["windows"] as? [[String: Any]])?.count == 4)
        // 2 days of 4 and 1.5 hours, a tenth of them.
        let seconds = try #require(audio["recorded_s"] as? Int)
        #expect(abs(seconds - 3960) <= 120)
        #expect((listing["sun"] as? [[String: Any]])?.count == 2)
        try device.configure(
            """
            schedule_offset = "+10:30"
            [audio]
            schedule = ["22:00..23:30"]
            """
        )
        let local = try device.run("schedule", "--days", "2").output
        #expect(local.contains("times in UTC+10:30 (schedule_offset)"), "\(local)")
        #expect(local.contains("22:00-23:30"))
        try device.configure(
            """
            [location]
            enabled = false
            [audio]
            schedule = ["06:02..06:05"]
            duty = "1m/10m"
            [beacons]
            schedule = ["dawn..dusk"]
            """
        )
        let check = try device.run("config", "check")
        #expect(check.status == 1)
        #expect(
            check.error.contains("audio.schedule: \"06:02..06:05\" does not open within a year")
        )
        #expect(
            check.error.contains("beacons.schedule follows the sun, and nothing gives a position")
        )
    }
}
