// The page's index, compared with the record files.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerBase
@testable import ServerIndex

@Suite struct IndexTests {
    private static let event =
        #","kind":"storage_low","source":"storage","detail":{"level":"low","records":5}"#

    /// Waits until all stored records are indexed, and checks the index.
    private func expectIndexed(_ receiver: ReceiverProcess, records: Int) throws {
        var last = try receiver.command("index", "check")
        let isThere: Bool = try eventually {
            last = try receiver.command("index", "check")
            return last.status == 0 && last.output.contains("with \(records) record")
                && !last.output.contains("not read yet")
        }
        let said = "\(last.output) \(last.error)"
        #expect(isThere, "\(said)")
    }

    /// The pages are rendered again after each change.
    @Test func eachChange_isCounted() throws {
        let path = "stream=places/date=2026-11-21/device=d1"
        let folder = TemporaryFolder(path)
        let line = #"{"id":"a","timestamp":"2026-11-21T04:30:07.123Z"}\#n"#
        try folder.write(line, to: path + "/records.ndjson")
        let follower = try IndexFollower(directory: folder.path, log: ServerLog(isQuiet: true))
        try follower.start()
        defer { follower.finish() }
        try waitUntil("all that was there") { !follower.isBehind }
        let before = follower.changes
        follower.record([path + "/records.ndjson": Int64(line.utf8.count)])
        try waitUntil("a change") { follower.changes > before }
        let records = try FleetReader(directory: folder.path)?.days(of: "d1").map(\.records)
        #expect(records == [1])
    }

    /// Runs statements on the index, to damage it.
    private func change(_ receiver: ReceiverProcess, _ statements: String) throws {
        let script =
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.executescript(sys.argv[2])"
        let path = receiver.folder + "/.receiver-index.sqlite"
        #expect(try Process.run("/usr/bin/python3", ["-c", script, path, statements]).status == 0)
    }

    private func file(_ receiver: ReceiverProcess, _ device: String = "d1") -> String {
        receiver.folder + "/stream=places/date=2026-11-21/device=\(device)/records.ndjson"
    }

    @Test func index_followsWhatIsStored_andGoesOnAfterAKill() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a", "b"]) == 200)
        #expect(try receiver.send(ids: ["b", "c"], padding: Self.event) == 200)
        #expect(try receiver.send(device: "d2", ids: ["d"], padding: Self.event) == 200)
        try expectIndexed(receiver, records: 4)
        for round in 0..<3 {
            for batch in 0..<5 { _ = try receiver.send(ids: ["r\(round)-\(batch)"]) }
            receiver.kill()
            try receiver.start()
        }
        try expectIndexed(receiver, records: 19)
        #expect(receiver.terminate() == 0)
    }

    @Test func rowThatIsWrong_isNamed_andMadeAnew() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a", "b"], padding: Self.event) == 200)
        try expectIndexed(receiver, records: 2)
        try change(receiver, "UPDATE files SET records=7; DELETE FROM events WHERE id='a'")
        try change(receiver, "UPDATE latest SET line='{}'; UPDATE states SET source='other'")
        try change(receiver, "UPDATE slots SET records=9")
        let check = try receiver.command("index", "check")
        #expect(check.status == 1)
        for part in [
            "files: 'd1' 'places' '2026-11-21' is not as in the file", "'a' is missing",
            "latest: 'd1' 'places' is not", "states: 'd1' 'storage_low' 'other' is in no file",
            "states: 'd1' 'storage_low' 'storage' is missing",
            "slots: 'd1 places 2026-11-21' 2992059 is not",
        ] { #expect(check.output.contains(part), "\(part) in \(check.output)") }
        #expect(check.error.contains("6 rows differ"))
        let rebuild = try receiver.command("index", "rebuild")
        #expect(rebuild.output == "indexed 2 records of 1 file\n")
        try expectIndexed(receiver, records: 2)
    }

    /// Intervals of a device that means no good, in many parts of a file.
    @Test func effort_isAddedUp_andBounded() throws {
        let receiver = try ReceiverProcess()
        func send(_ source: String, _ state: String, _ from: String, _ to: String, _ more: String)
            throws
        {
            let ends = #""from":"2026-11-21T\#(from):00Z","to":"\#(to)Z","source":"\#(source)""#
            let padding =
                #",\#(ends),"state":"\#(state)","reason":"\#(more)","records":9223372036854775807"#
            #expect(try receiver.send(padding: padding) == 200)
        }
        for number in 0..<5 {
            try send("source-\(number)", "recorded", "00:00", "2026-11-21T01:00:00", "")
            try send("audio", "failed", "0\(number):00", "2026-11-21T06:00:00", "reason \(number)")
            try send("audio", "recorded", "20:00", "9999-12-31T00:00:00", "")
            try send("audio", "off", "05:00", "2026-11-21T05:00:00", "empty")
            try send("audio", "other", "05:00", "2026-11-21T06:00:00", "unknown state")
        }
        try expectIndexed(receiver, records: 25)
        let rows = try receiver.sql("SELECT * FROM effort", in: ".receiver-index.sqlite")
        let hour: Int64 = 3_600_000
        let worst = 6 * hour + Day.milliseconds
        let lengths = "\(20 * hour), 0, \(20 * hour), 0, 0"
        let start = "[('d1', 'audio', '2026-11-21', 1, 10000000000, \(worst), 'reason 0', 0, "
        #expect(rows == "\(start)\(lengths))]\n")
    }

    /// Two processes read the same files into the same index.
    @Test func rebuildBesideAReceiverThatStores_readsNothingTwice() throws {
        let receiver = try ReceiverProcess()
        let (port, folder) = (receiver.port, receiver.folder)
        let sent = Locked(0)
        try withThreads(3) { thread in
            for round in 0..<20 {
                let body = RawRequest.batch((0..<50).map { "\(thread)-\(round)-\($0)" })
                guard let client = try? RawClient(port: port) else { continue }
                client.send(RawRequest.head(length: body.count))
                client.send(body)
                if client.answer()?.status == 200 { sent.update { $0 += 50 } }
                if round % 7 == 0 {
                    let arguments = ["index", "rebuild", "--data", folder]
                    let rebuild = try? Process.run(Tree.program("waypost-receiver"), arguments)
                    #expect(rebuild?.status == 0)
                }
            }
        }
        #expect(sent.value == 3000)
        try expectIndexed(receiver, records: 3000)
    }

    /// As a killed `index rebuild` leaves it; a running rebuild is not disturbed.
    @Test func partialIndex_isCompletedWithTheNextBatch() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a", "b"]) == 200)
        #expect(try receiver.send(device: "d2", ids: ["c"]) == 200)
        try expectIndexed(receiver, records: 3)
        let tables = [
            "files", "latest", "events", "states", "slots", "series", "readings", "effort",
            "beacons",
            "detections",
        ]
        let emptied = tables.map { "DELETE FROM \($0); " }.joined()
        try change(receiver, emptied + "PRAGMA application_id=1")
        let whole = "PRAGMA application_id", name = ".receiver-index.sqlite"
        try RebuildLock.hold(in: receiver.folder) { () throws -> Void in
            #expect(try receiver.send(device: "d2", ids: ["d"]) == 200)
            let files = "SELECT device, records FROM files"
            try receiver.waitUntil(files, gives: "[('d2', 2)]\n", in: name)
            #expect(try receiver.sql(whole, in: name) == "[(1,)]\n")
        }
        #expect(try receiver.send(device: "d2", ids: ["e"]) == 200)
        try expectIndexed(receiver, records: 5)
        try receiver.waitUntil(whole, gives: "[(0,)]\n", in: name)
    }

    @Test func movedFile_keepsItsRows_andReplacementIsReadFully() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a", "b"]) == 200)
        #expect(try receiver.send(device: "d2", ids: ["c"]) == 200)
        try expectIndexed(receiver, records: 3)
        try FileManager.default.removeItem(atPath: file(receiver))
        let check = try receiver.command("index", "check")
        #expect(check.status == 0)
        #expect(check.output.contains("archived away: 1 file;"))
        // Longer than before, so that only its beginning shows that it is another file.
        #expect(try receiver.send(ids: ["e", "f", "g", "h", "i"]) == 200)
        try expectIndexed(receiver, records: 6)
    }

    /// It begins like before, and is longer than its checkpoint.
    @Test func truncatedAndRegrownFile_isReadFromTheStart() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: (0..<8).map { "before-\($0)" }) == 200)
        try expectIndexed(receiver, records: 8)
        let text = try String(contentsOfFile: file(receiver), encoding: .utf8)
        let kept = text.split(separator: "\n").prefix(5).map { $0 + "\n" }.joined()
        try kept.write(toFile: file(receiver), atomically: false, encoding: .utf8)
        let later = "2026-11-21T06:30:07.123Z"
        #expect(try receiver.send(ids: (0..<9).map { "behind-\($0)" }, time: later) == 200)
        try expectIndexed(receiver, records: 14)
    }

    @Test func linesThatAreNoRecords_orVeryLong_arePassedOver() throws {
        let receiver = try ReceiverProcess()
        let long = #","text":""# + String(repeating: "x", count: 3 << 20) + #"""#
        #expect(try receiver.send(ids: ["a"]) == 200)
        #expect(try receiver.send(ids: ["long"], padding: long) == 200)
        #expect(try receiver.send(ids: ["b"]) == 200)
        // The long line is in the file, and is counted separately.
        try expectIndexed(receiver, records: 2)
        #expect(receiver.terminate() == 0)
        // An editor: the same size, but one line is not a record any more.
        let text = try String(contentsOfFile: file(receiver), encoding: .utf8)
        let edited = text.replacingOccurrences(of: #"{"id":"b""#, with: #"#"id":"b""#)
        try edited.write(toFile: file(receiver), atomically: false, encoding: .utf8)
        try receiver.start()
        #expect(try receiver.command("index", "check").status == 1)
        #expect(try receiver.command("index", "rebuild").status == 0)
        try expectIndexed(receiver, records: 1)
    }

    /// The files matter: gateways are answered whatever happens to the index.
    @Test func indexThatIsDamagedOrCannotBeMade_delaysNobody() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a"]) == 200)
        try expectIndexed(receiver, records: 1)
        #expect(receiver.terminate() == 0)
        let index = receiver.folder + "/.receiver-index.sqlite"
        for end in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: index + end) }
        try Data(repeating: 0x55, count: 9000).write(to: URL(fileURLWithPath: index))
        try receiver.start()
        #expect(try receiver.send(ids: ["b"]) == 200)
        try expectIndexed(receiver, records: 2)
        #expect(receiver.terminate() == 0)
        for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: index + end) }
        try FileManager.default.createDirectory(atPath: index, withIntermediateDirectories: false)
        try receiver.start()
        #expect(try receiver.send(ids: ["c"]) == 200)
        #expect(try receiver.command("index", "check").status == 1)
    }

    /// A bad sector, or a folder restored with another owner.
    @Test func fileThatCannotBeRead_holdsUpNoOther() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a", "b"]) == 200)
        #expect(try receiver.send(device: "d2", ids: ["c"]) == 200)
        try expectIndexed(receiver, records: 3)
        #expect(receiver.terminate() == 0)
        let (name, kept) = (".receiver-index.sqlite", receiver.folder + "/kept")
        try FileManager.default.removeItem(atPath: receiver.folder + "/" + name)
        try FileManager.default.moveItem(atPath: file(receiver), toPath: kept)
        // A link to itself, which not even root can open.
        try FileManager.default.createSymbolicLink(
            atPath: file(receiver),
            withDestinationPath: file(receiver)
        )
        try receiver.start()
        #expect(try receiver.send(device: "d2", ids: ["d"]) == 200)
        let whole = "SELECT sum(records), application_id FROM files, pragma_application_id"
        try receiver.waitUntil(whole, gives: "[(2, 0)]\n", in: name)
        let rebuild = try receiver.command("index", "rebuild")
        #expect(rebuild.output == "indexed 2 records of 1 file\n")
        #expect(rebuild.error.contains("1 file could not be read: open \(file(receiver)): "))
        #expect(rebuild.status == 1)
        // The file is back and is read with the next batch at the latest.
        try FileManager.default.removeItem(atPath: file(receiver))
        try FileManager.default.moveItem(atPath: kept, toPath: file(receiver))
        #expect(try receiver.send(device: "d2", ids: ["e"]) == 200)
        try expectIndexed(receiver, records: 5)
    }

    @Test func indexDamagedAgain_isRebuiltAgain() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["0"]) == 200)
        try expectIndexed(receiver, records: 1)
        for round in 1...2 {
            try change(
                receiver,
                """
                PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=99999 WHERE name='slots';
                PRAGMA schema_version=1000
                """
            )
            #expect(try receiver.send(ids: ["\(round)"]) == 200)
            try expectIndexed(receiver, records: 2 * round)
            #expect(try receiver.send(ids: ["\(round)-later"]) == 200)
            try expectIndexed(receiver, records: 2 * round + 1)
        }
    }

    @Test func indexOfAnotherVersion_isMadeAnew() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a"]) == 200)
        try expectIndexed(receiver, records: 1)
        #expect(receiver.terminate() == 0)
        try change(receiver, "PRAGMA user_version=99; DROP TABLE events")
        let check = try receiver.command("index", "check")
        #expect(check.status == 1)
        #expect(check.error.contains("no index of this version"))
        try receiver.start()
        try expectIndexed(receiver, records: 1)
    }
}
