// Days that are deleted while a server runs.
import Foundation
import Host
import ReceiverSupport
import Support
import Testing

@testable import ServerBase
@testable import ServerIndex

@Suite struct PruningTests {
    private func send(_ receiver: ReceiverProcess, _ ids: String..., day: String) throws {
        #expect(try receiver.send(ids: ids, time: "\(day)T04:30:07.123Z") == 200)
    }

    private func isThere(_ receiver: ReceiverProcess, _ path: String) -> Bool {
        FileManager.default.fileExists(atPath: "\(receiver.folder)/\(path)")
    }

    private func prune(_ receiver: ReceiverProcess, _ arguments: String...) throws -> Outcome {
        // The test machine's kernel may not vouch for its clock.
        try receiver.command(["prune", "--trust-clock"] + arguments)
    }

    private let today = String(RawRequest.time().prefix(10))

    @Test func oldDays_areDeleted_andTheirIdsStayKnown() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, "a", "b", day: "2025-01-01")
        try send(receiver, "c", day: "2025-01-02")
        try send(receiver, "d", day: today)
        TemporaryFolder.mark(receiver.folder + "/audio/sounds/2025-01-01/d1/x.ogg")
        try receiver.waitUntil("SELECT count(*) FROM files", gives: "[(3,)]\n", in: index)
        let dry = try prune(receiver, "--older-than", "90d", "--dry-run")
        #expect(
            dry.output.contains("would delete places: 2 days (2025-01-01 to 2025-01-02), 2 files")
        )
        #expect(try receiver.ids("places").sorted() == ["a", "b", "c", "d"])
        let done = try prune(receiver, "--older-than", "90d")
        #expect(done.status == 0 && done.output.contains("deleted places: 2 days"), "\(done.error)")
        #expect(try receiver.ids("places") == ["d"])
        #expect(!isThere(receiver, "stream=places/date=2025-01-01"))
        #expect(!isThere(receiver, "audio"))
        #expect(try receiver.sql("SELECT count(*) FROM files", in: index) == "[(1,)]\n")
        try send(receiver, "a", "b", "c", day: "2025-01-01")
        #expect(try receiver.ids("places") == ["d"])
        // A record that is new begins the day again.
        try send(receiver, "e", day: "2025-01-01")
        #expect(try receiver.ids("places").sorted() == ["d", "e"])
        receiver.kill()
        try receiver.start()
        #expect(try receiver.ids("places").sorted() == ["d", "e"])
        #expect(!isThere(receiver, ".receiver-cut"))
        try receiver.waitUntil("SELECT count(*) FROM files", gives: "[(2,)]\n", in: index)
        #expect(try receiver.command("index", "check").status == 0)
        #expect(try prune(receiver, "--older-than", "90d").output.contains("1 day (2025-01-01)"))
        #expect(try prune(receiver, "--older-than", "90d").output.contains("nothing is older"))
    }

    private let index = ".receiver-index.sqlite"

    @Test func selection_limitsWhatIsDeleted() throws {
        let receiver = try ReceiverProcess()
        for device in ["d1", "d2"] {
            let time = "2025-01-01T04:30:07.123Z"
            #expect(try receiver.send(device: device, ids: [device], time: time) == 200)
        }
        try receiver.send("trips", on: "2025-01-01", [(time: "06:00:00", members: #""x":1"#)])
        #expect(try prune(receiver, "--older-than", "90d", "--device", "d2").status == 0)
        #expect(try receiver.ids("places") == ["d1"])
        #expect(try prune(receiver, "--older-than", "90d", "--stream", "trips").status == 0)
        #expect(try receiver.ids("trips") == [] && receiver.ids("places") == ["d1"])
        #expect(!isThere(receiver, "stream=trips"))
        for id in ["../../x", "..", ""] {
            #expect(try prune(receiver, "--older-than", "1d", "--device", id).status == 1)
        }
        for age in ["0d", "90", "-1d", "90h", "d"] {
            #expect(try prune(receiver, "--older-than=\(age)").status == 64)
        }
        #expect(try receiver.ids("places") == ["d1"])
    }

    @Test func folderBehindALink_isLeftAlone() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, "a", day: "2025-01-01")
        let other = TemporaryFolder()
        let stream = receiver.folder + "/stream=places"
        try FileManager.default.moveItem(atPath: stream, toPath: other.path + "/places")
        try FileManager.default.createSymbolicLink(
            atPath: stream,
            withDestinationPath: other.path + "/places"
        )
        #expect(try prune(receiver, "--older-than", "90d").output.contains("nothing is older"))
        #expect(try receiver.sql("SELECT count(*) FROM files") == "[(1,)]\n")
        #expect(
            try String(
                contentsOfFile: stream + "/date=2025-01-01/device=d1/records.ndjson",
                encoding: .utf8
            ).contains("\"a\"")
        )
    }

    /// Uploads into the days that are being deleted; some runs are killed.
    @Test func pruningDuringUploads_duplicatesNoRecord() throws {
        let receiver = try ReceiverProcess()
        let clients = ManyClients(16, of: receiver)
        for round in 0..<8 {
            let before = clients.answered.value.count
            try waitUntil("answers") { clients.answered.value.count > before + 100 }
            guard round % 2 == 1 else {
                let pruned = try prune(receiver, "--older-than", "1d")
                #expect(pruned.status == 0, "\(pruned.error)")
                continue
            }
            let pruning = try Process.started(
                Tree.program("waypost-receiver"),
                ["prune", "--trust-clock", "--older-than", "1d", "--data", receiver.folder]
            )
            try waitUntil("a deletion") {
                let names = try? FileManager.default.contentsOfDirectory(atPath: receiver.folder)
                return names?.contains { $0.hasPrefix(".receiver-pruned-") } ?? false
                    || !pruning.isRunning
            }
            pruning.killAndWait()
        }
        try clients.finish()
        #expect(Set(clients.statuses.value.keys).isSubset(of: [0, 200, 500]))
        let all = clients.answered.value
        let known = try receiver.sql(
            "SELECT (SELECT count(*) FROM other_ids) + (SELECT sum(last-first+1) FROM id_ranges)"
        )
        #expect(known == "[(\(all.count),)]\n")
        let left = try receiver.ids("places")
        #expect(left.count == Set(left).count && left.count < all.count)
        receiver.kill()
        try receiver.start()
        #expect(try receiver.ids("places").sorted() == left.sorted())
        #expect(!isThere(receiver, ".receiver-cut"))
        let again = try receiver.send(device: "d3", ids: ["c3-0-0", "c3-0-1"])
        #expect(again == 200)
        #expect(try receiver.ids("places").sorted() == left.sorted())
        #expect(try prune(receiver, "--older-than", "1d").status == 0)
        #expect(try receiver.ids("places") == [])
        let names = try FileManager.default.contentsOfDirectory(atPath: receiver.folder)
        #expect(!names.contains { $0.hasPrefix(".receiver-pruned-") })
    }

    @Test func serverWithARetention_deletesByItself() throws {
        let receiver = try ReceiverProcess(["--retain", "400d", "--retain", "trips=90d"])
        let old = "2026-01-01"
        try send(receiver, "a", day: old)
        try receiver.send("trips", on: old, [(time: "06:00:00", members: #""x":1"#)])
        #expect(receiver.terminate() == 0)
        try receiver.start()
        if ClockEvidence.kernelVouches() != true {
            try retainer(receiver, at: SystemClock().stamp(), days: ["trips": 90]).round()
        }
        try waitUntil("the deletion") { try receiver.ids("trips").isEmpty }
        #expect(try receiver.ids("places") == ["a"])
        let wrong = try Process.run(
            Tree.program("waypost-receiver"),
            ["serve", "--retain", "trips=soon", "--data", receiver.folder]
        )
        #expect(wrong.status == 64)
    }

    private func retainer(
        _ receiver: ReceiverProcess,
        at time: Stamp,
        isSynced: Bool = true,
        days: [String: Int] = ["places": 90]
    ) throws -> Retainer {
        var retention = Retention()
        retention.streams = days
        return try Retainer(
            directory: receiver.folder,
            retention: retention,
            log: ServerLog(isQuiet: true),
            clock: ManualClock(time),
            isClockSynced: { isSynced }
        )
    }

    /// A clock that stands years ahead must not delete everything.
    @Test func retention_waitsForACredibleClock() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, "a", day: today)
        #expect(receiver.terminate() == 0)
        let now = SystemClock().stamp()
        let ahead = now.advanced(by: .seconds(5 * 365 * 86_400))
        #expect(try retainer(receiver, at: ahead, isSynced: false).round() == .clockNotSynced)
        // Compared with the last batch, as no round has run before.
        #expect(try retainer(receiver, at: ahead).round() == .clockJumped)
        #expect(try retainer(receiver, at: now).round() == .done)
        // A batch that came while the clock was wrong.
        _ = try receiver.sql("UPDATE devices SET last_seen = last_seen + 5*365*86400000")
        let late = try retainer(receiver, at: ahead)
        #expect(late.round() == .clockJumped)
        #expect(try receiver.ids("places") == ["a"])
        #expect(late.round(after: .clockJumped) == .done)
        #expect(try receiver.ids("places") == [])
    }

    @Test(.enabled(if: ClockEvidence.kernelVouches() != true))
    func prune_needsAnOption_ifClockIsUnsynced() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, "a", day: "2025-01-01")
        let refused = try receiver.command("prune", "--older-than", "90d")
        #expect(refused.status == 1 && refused.error.contains("--trust-clock"))
        let dry = try receiver.command("prune", "--older-than", "90d", "--dry-run")
        #expect(dry.output.contains("1 day (2025-01-01)"))
        #expect(try receiver.ids("places") == ["a"])
    }

    @Test func streamThatNeverCame_isNamed() throws {
        let receiver = try ReceiverProcess()
        try send(receiver, "a", day: "2025-01-01")
        let unknown = try prune(receiver, "--older-than", "90d", "--stream", "audio")
        #expect(unknown.status == 1 && unknown.output.isEmpty)
        #expect(unknown.error.contains("has no stream audio; it has: places"))
        #expect(try prune(receiver, "--older-than", "90d", "--stream", "places").status == 0)
        // All its days are deleted, but it has come.
        #expect(try prune(receiver, "--older-than", "90d", "--stream", "places").status == 0)
    }
}

extension TemporaryFolder {
    /// Creates a file and the folders above it.
    static func mark(_ path: String) {
        let file = URL(fileURLWithPath: path)
        try? FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try? Data("x".utf8).write(to: file)
    }
}
