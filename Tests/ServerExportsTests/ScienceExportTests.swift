// Exports for science: records that cannot be read, are dated ahead, or have no right time.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct ScienceExportTests {
    private static let day = "2026-10-02"

    private let temporary = TemporaryFolder()
    private var out: String { temporary.path + "/out" }

    /// Sends a second of audio at each of these seconds of a day.
    private func send(
        _ receiver: ReceiverProcess,
        _ seconds: [Int],
        clock: String,
        on day: String = Self.day
    ) throws {
        let members = [
            #""audio_data":"\#(SentAudio.wav(seconds: 1).base64EncodedString())""#,
            #""audio_format":"wav","sample_rate":8000,"duration":1,"clock":"\#(clock)""#,
            #""capture_device":"mic","device_rate":4000"#,
        ]
        let records = seconds.map { (second: $0, members: members.joined(separator: ",")) }
        try receiver.send("sound", on: day, records)
    }

    private func export(_ receiver: ReceiverProcess) throws -> Outcome {
        try receiver.command(
            "export",
            "camtrap-dp",
            "--position",
            "d1=46.46,6.84",
            "--out",
            out
        )
    }

    /// Returns the rows of a table.
    private func rows(_ name: String) throws -> [Substring] {
        let text = try String(contentsOfFile: "\(out)/\(name).csv", encoding: .utf8)
        return Array(text.split(separator: "\n").dropFirst())
    }

    /// As Song Meter recorders name them, in the site's time, and as old as the recording.
    @Test func audio_hasNamesOfSongMeter_andTheTimeOfItsStart() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [50_400], clock: "synced")
        let options = ["--names", "songmeter", "--offset", "+10:30", "--out", out]
        let outcome = try receiver.command(["export", "audio"] + options)
        #expect(outcome.status == 0, "\(outcome.error)")
        let name = "d1_20261003_003000.wav"
        #expect(try FileManager.default.contentsOfDirectory(atPath: out) == [name])
        let path = "\(out)/\(name)"
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let modified = try #require(attributes[.modificationDate] as? Date)
        let start = try #require(ISO8601DateFormatter().date(from: "2026-10-02T14:00:00Z"))
        #expect(modified == start)
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
        #expect(text.contains("\nTimestamp: 2026-10-03T00:30:00.000+10:30\n"))
        #expect(text.contains("\nWaypost|Device Rate: 4000\n"))
        #expect(
            try receiver.command(["export", "audio", "--offset", "1", "--out", out]).status == 64
        )
    }

    @Test func recordsThatAreUnreadableOrAhead_areCounted() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [3600, 7200, 10_800], clock: "synced")
        #expect(receiver.terminate() == 0)
        let file = "stream=sound/date=\(Self.day)/device=d1/records.ndjson"
        let text = try String(contentsOfFile: "\(receiver.folder)/\(file)", encoding: .utf8)
        var lines = text.split(separator: "\n").map(String.init)
        try #require(lines.count == 3)
        lines[1] = "x" + lines[1].dropFirst()
        lines[2] = lines[2].replacingOccurrences(of: #""synced""#, with: #""future""#)
        try (lines.joined(separator: "\n") + "\n")
            .write(toFile: "\(receiver.folder)/\(file)", atomically: false, encoding: .utf8)
        let outcome = try export(receiver)
        #expect(outcome.status == 1)
        let messages = [
            "because they cannot be read: 1;", "\(receiver.folder)/\(file)",
            "because they are dated ahead of the server's clock: 1 ",
        ]
        for message in messages { #expect(outcome.error.contains(message), "\(outcome.error)") }
        #expect(try rows("media").count == 1)
    }

    /// A stream's newest file does not show what it contains if none of its records can be read.
    @Test func fileWithoutAReadableRecord_hidesNoOther() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [3600], clock: "synced")
        try send(receiver, [3600], clock: "synced", on: "2026-10-03")
        #expect(receiver.terminate() == 0)
        let file = receiver.folder + "/stream=sound/date=2026-10-03/device=d1/records.ndjson"
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        try handle.write(contentsOf: Data("x".utf8))
        try handle.close()
        let outcome = try export(receiver)
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("because they cannot be read: 1;"))
        #expect(try rows("media").count == 1)
    }

    @Test func undatedRecords_stretchNoDeployment() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [60], clock: "unsynced", on: "1970-01-01")
        try send(receiver, [3600, 7200], clock: "synced")
        #expect(try export(receiver).status == 0)
        let deployments = try rows("deployments")
        #expect(deployments.count == 1)
        let span = "\(Self.day)T01:00:00Z,\(Self.day)T02:00:01Z"
        #expect(deployments.allSatisfy { $0.contains(span) && $0.contains(",true,") })
        #expect(try rows("media").count == 3)
    }

    /// The clock of that boot was the saved one of two weeks before.
    @Test func unsyncedRecordsAfterRelease_extendNoDeployment() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [8 * 3600], clock: "unsynced", on: "2026-11-10")
        try send(receiver, [10 * 3600], clock: "synced", on: "2026-11-25")
        #expect(try export(receiver).status == 0)
        let deployments = try rows("deployments")
        #expect(deployments.count == 1)
        let span = "2026-11-25T10:00:00Z,2026-11-25T10:00:01Z"
        #expect(deployments.allSatisfy { $0.contains(span) })
    }

    /// A recording over midnight is of the day before; its name is no formula.
    @Test func detectionAfterMidnight_namesItsRecording() throws {
        let receiver = try ReceiverProcess()
        let members =
            #""audio_data":"\#(SentAudio.wav(seconds: 4).base64EncodedString())","audio_format":"wav","#
            + #""sample_rate":8000,"duration":4,"clock":"synced""#
        try receiver.send("sound", on: "2026-10-31", [(second: 86_398, members: members)])
        let species = #""species":"=HYPERLINK(1)","confidence":0.5,"clock":"synced""#
        try receiver.send("birds", on: "2026-11-01", [(second: 1, members: species)])
        #expect(try export(receiver).status == 0)
        let media = try #require(rows("media").first).split(separator: ",")[0]
        let observation = try #require(rows("observations").first)
        #expect(observation.contains(",\(media),"), "\(observation)")
        #expect(observation.contains(",media,") && observation.contains(",'=HYPERLINK(1),"))
    }

    /// A boot that lasted an hour, with a clock of weeks before: not even its length can be seen.
    @Test func effortWithoutADate_isNoDeployment_andNoFailure() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [3600, 7200], clock: "synced")
        func effort(_ state: String, _ from: String, _ to: String, _ clock: String) throws {
            let members =
                #""source":"audio","state":"\#(state)","from":"\#(from)Z","to":"\#(to)Z","clock":"\#(clock)""#
            let (day, time) = (String(from.prefix(10)), String(from.dropFirst(11)))
            try receiver.send("waypost_effort", on: day, [(time, members)])
        }
        let unset = "2026-09-11T08:00:00.000"
        try effort("recorded", unset, "2026-09-11T09:00:00.000", "unsynced")
        try effort("unknown", "2026-09-11T09:00:00.000", "\(Self.day)T01:00:00.000", "unsynced")
        try effort("failed", "\(Self.day)T01:10:00.000", "\(Self.day)T01:20:00.000", "corrected")
        try effort("failed", "\(Self.day)T01:30:00.000", "\(Self.day)T01:40:00.000", "unsynced")
        #expect(try export(receiver).status == 0)
        let deployments = try rows("deployments")
        let span = "\(Self.day)T01:00:00Z,\(Self.day)T02:00:01Z"
        #expect(deployments.count == 1 && deployments[0].contains(span), "\(deployments)")
        let failures = try rows("failures")
        #expect(failures.count == 1 && failures[0].contains("T01:10:00Z"), "\(failures)")
    }

    @Test func deviceWhoseClockWasNeverSet_hasADeployment() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, [60], clock: "unsynced", on: "1970-01-01")
        #expect(try export(receiver).status == 0)
        #expect(try rows("deployments").count == 1)
        #expect(try rows("media").count == 1)
    }
}
