// Confirmed records are stored exactly once: after kills, with a full disk, with files archived
// away.
import Foundation
import Host
import ReceiverSupport
import Support
import Testing

@testable import ServerArchive
@testable import ServerBase

@Suite struct DurabilityTests {
    /// WAYPOST_KILLS: the number of kills.
    private static let kills =
        ProcessInfo.processInfo.environment["WAYPOST_KILLS"].flatMap { Int($0) } ?? 5

    @Test func killWith64Clients_losesAndDuplicatesNothing() throws {
        let receiver = try ReceiverProcess()
        let clients = ManyClients(64, of: receiver)
        for _ in 0..<Self.kills {
            let before = clients.answered.value.count
            try waitUntil("answers") { clients.answered.value.count > before + 100 }
            receiver.kill()
            try receiver.start()
            clients.port.update { $0 = receiver.port }
        }
        try clients.finish()
        let stored = try receiver.ids("places")
        #expect(stored.count == Set(stored).count)
        #expect(Set(stored) == clients.answered.value)
    }

    /// The index thread uses libcrypto, which exit(3) would clean up before the process ends.
    @Test func endInOrder_clearsNothingUpUnderItsThreads() throws {
        let folder = TemporaryFolder("end")
        let (source, mark) = (folder.path + "/end.c", folder.path + "/cleared-up")
        try """
        #include <fcntl.h>
        __attribute__((destructor)) static void end(void) { open("\(mark)", O_WRONLY | O_CREAT, 0600); }
        """.write(toFile: source, atomically: true, encoding: .utf8)
        let library = folder.path + "/end.so"
        let compiler = try Process.run("/usr/bin/env", ["cc", "-shared", "-o", library, source])
        try #require(compiler.status == 0, "\(compiler.error)")
        let receiver = try ReceiverProcess(environment: ["LD_PRELOAD": library])
        #expect(receiver.terminate() == 0)
        #expect(!FileManager.default.fileExists(atPath: mark))
    }

    @Test func fullDiskWith64Clients_losesAndDuplicatesNothing() throws {
        let temporary = TemporaryFolder("data")
        let disk = try FailingDisk(in: temporary)
        let receiver = try ReceiverProcess(
            environment: disk.environment,
            in: temporary.path + "/data"
        )
        let clients = ManyClients(64, of: receiver)
        for fault in [ENOSPC, EIO, ENOSPC] {
            let before = clients.answered.value.count
            try waitUntil("answers") { clients.answered.value.count > before + 100 }
            try disk.fail(fault)
            let refused = clients.statuses.value[500, default: 0]
            try waitUntil("refusals") { clients.statuses.value[500, default: 0] > refused + 64 }
            // No half batch is visible at any time, and the server confirms what is there.
            #expect(Set(try receiver.ids("places")).isSuperset(of: clients.answered.value))
            let client = try RawClient(receiver, from: "127.0.0.99")
            client.send(RawRequest.health)
            #expect(client.answer()?.status == 200)
            try disk.fail(0)
        }
        try clients.finish()
        let stored = try receiver.ids("places")
        #expect(stored.count == Set(stored).count)
        #expect(Set(stored) == clients.answered.value)
        #expect(Set(clients.statuses.value.keys).isSubset(of: [0, 200, 500]))
    }

    /// A failed commit may be complete in the WAL, where the next start finds it.
    @Test func failedCommit_isAtomic_afterACrash() throws {
        let temporary = TemporaryFolder("data")
        let disk = try FailingDisk(in: temporary)
        let receiver = try ReceiverProcess(
            environment: disk.environment,
            in: temporary.path + "/data"
        )
        #expect(try postFourDays(receiver, "a")?.status == 200)
        try disk.failSyncs(EIO)
        #expect(try postFourDays(receiver, "b")?.status == 500)
        receiver.kill()
        try disk.failSyncs(0)
        try receiver.start()
        #expect(try postFourDays(receiver, "b")?.status == 200)
        try disk.failSyncs(EIO)
        #expect(try postFourDays(receiver, "c")?.status == 500)
        #expect(try postFourDays(receiver, "d")?.status == 500)
        try disk.failSyncs(0)
        // The next commit overwrites the failed one, in the files too.
        #expect(try postFourDays(receiver, "e")?.body.contains(#""duplicates":0"#) == true)
        receiver.kill()
        try receiver.start()
        #expect(try postFourDays(receiver, "c")?.body.contains(#""duplicates":0"#) == true)
        // The batch after a failed commit may be refused, and then writes nothing itself.
        try disk.failSyncs(EIO)
        #expect(try postFourDays(receiver, "f")?.status == 500)
        try disk.failSyncs(0)
        let event = #","kind":"source_lost","source":"ID","detail":{}"#
        let ids = (0...200).map { "e\($0)" }
        let body = RawRequest.batch(ids, padding: event, numbersSources: true)
        let client = try RawClient(receiver)
        client.send(Array(RawRequest.head(length: body.count).utf8) + body)
        #expect(client.answer()?.status == 422)
        receiver.kill()
        try receiver.start()
        #expect(try postFourDays(receiver, "f")?.body.contains(#""duplicates":0"#) == true)
        let all = ["a", "b", "c", "e", "f"].flatMap { id in (1...4).map { id + "\($0)" } }
        #expect(try receiver.ids("places").sorted() == all)
    }

    /// A failed fsync may leave pages that can be read but are lost with the power.
    @Test func journalThatIsFoundAtAStart_isWrittenOnceMore() throws {
        let temporary = TemporaryFolder("data")
        let disk = try FailingDisk(in: temporary)
        let log = temporary.path + "/log"
        let receiver = try ReceiverProcess(
            environment: disk.environment.merging(["FIELDFAULTS_LOG": log]) { $1 },
            in: temporary.path + "/data"
        )
        #expect(try post(receiver, ["a"])?.status == 200)
        receiver.kill()
        let journal = receiver.folder + "/.receiver.sqlite-wal"
        let found = try FileManager.default.attributesOfItem(atPath: journal)
        let (size, inode) = (found[.size] as? UInt64, found[.systemFileNumber] as? UInt64)
        try FileManager.default.removeItem(atPath: log)
        try receiver.start()
        let changes = try FailingDisk.changes(in: log).filter { $0.inode == inode }
        #expect(changes.first { $0.kind == "w" }?.offset == 0)
        #expect(changes.filter { $0.kind == "w" }.reduce(0) { $0 + $1.length } >= size ?? .max)
        #expect(changes.contains { $0.kind == "s" })
        #expect(try receiver.ids("places") == ["a"])
    }

    /// So many files are synced with syncfs, which the failing disk does not see: only the WAL
    /// fails.
    private func postFourDays(
        _ receiver: ReceiverProcess,
        _ id: String
    ) throws -> RawClient.Answer? {
        let client = try RawClient(receiver)
        let records = (1...4).map {
            #"{"id":"\#(id)\#($0)","timestamp":"2026-11-0\#($0)T04:30:07.123Z"}"#
        }
        let body = Array(
            """
            {"stream_name":"places","device_id":"d1","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":4,"app_version":"1.0"}}
            """.utf8
        )
        client.send(Array(RawRequest.head(length: body.count).utf8) + body)
        return client.answer()
    }

    @Test(.enabled(if: TemporaryMount.isAllowed, "needs the right to mount a file system"))
    func startOnAFullDisk_answers_andStoresWhenThereIsRoom() throws {
        let disk = try TemporaryMount("size=32m")
        let receiver = try ReceiverProcess(in: disk.path + "/data")
        #expect(try post(receiver, ["a"])?.status == 200)
        #expect(receiver.terminate() == 0)
        let others = disk.path + "/others"
        #expect(FileManager.default.createFile(atPath: others, contents: nil))
        let filler = try #require(FileHandle(forWritingAtPath: others))
        while (try? filler.write(contentsOf: Data(count: 4096))) != nil {}
        for _ in 0..<2 {
            try receiver.start()
            let large = (0..<10_000).map { "large-\($0)" }
            #expect(try post(receiver, large)?.status == 500)
            #expect(try receiver.request(RawRequest.health).body.contains(#""records":1"#))
            #expect(receiver.terminate() == 0)
        }
        try receiver.start()
        try filler.truncate(atOffset: 0)
        #expect(try post(receiver, ["a", "b"])?.body.contains(#""duplicates":1"#) == true)
        #expect(FileManager.default.fileExists(atPath: receiver.folder + "/.receiver.reserve"))
    }

    private func post(_ receiver: ReceiverProcess, _ ids: [String]) throws -> RawClient.Answer? {
        let client = try RawClient(receiver)
        let body = RawRequest.batch(ids)
        client.send(Array(RawRequest.head(length: body.count).utf8) + body)
        return client.answer()
    }

    /// Gateways got a confirmation for it and do not send it again.
    @Test func whatAnOlderCopyOfTheIndexDoesNotKnow_isKeptAside() throws {
        let receiver = try ReceiverProcess()
        let files = FileManager.default
        let copies = TemporaryFolder("copies")
        // With its WAL, which a stop leaves in place.
        let index = { try files.contentsOfDirectory(atPath: receiver.folder).filter(Self.isIndex) }
        #expect(try post(receiver, ["a"])?.status == 200)
        #expect(receiver.terminate() == 0)
        for name in try index() {
            let copy = "\(copies.path)/\(name)"
            try files.copyItem(atPath: "\(receiver.folder)/\(name)", toPath: copy)
        }
        try receiver.start()
        #expect(try post(receiver, ["b", "c"])?.status == 200)
        #expect(receiver.terminate() == 0)
        for name in try index() { try files.removeItem(atPath: "\(receiver.folder)/\(name)") }
        for name in try files.contentsOfDirectory(atPath: copies.path) {
            let copy = "\(copies.path)/\(name)"
            try files.moveItem(atPath: copy, toPath: "\(receiver.folder)/\(name)")
        }
        try receiver.start()
        #expect(try receiver.ids("places") == ["a"])
        let folder = receiver.folder + "/.receiver-cut"
        let starts = try files.contentsOfDirectory(atPath: folder)
        #expect(starts.count == 1)
        let names = files.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        let kept = try #require(names.first { $0.hasSuffix("/records.ndjson") })
        let text = try String(contentsOfFile: "\(folder)/\(kept)", encoding: .utf8)
        #expect(text.split(separator: "\n").count == 2)
        #expect(text.hasPrefix(#"{"id":"b""#))
        #expect(receiver.terminate() == 0)
        // Nothing is cut off, so no copy is made.
        try receiver.start()
        #expect(try files.contentsOfDirectory(atPath: folder) == starts)
    }

    private static func isIndex(_ name: String) -> Bool { name.hasPrefix(".receiver.sqlite") }

    @Test func partitionThatWasArchivedAway_isNoError_nowOrLater() throws {
        let receiver = try ReceiverProcess()
        #expect(try post(receiver, ["a", "b", "c"])?.status == 200)
        let partition = receiver.folder + "/stream=places/date=2026-11-21"
        let archive = TemporaryFolder()
        try FileManager.default.moveItem(atPath: partition, toPath: archive.path + "/kept")
        // While it runs; then at a start, without a new file in the old one's place.
        #expect(try post(receiver, ["d"])?.status == 200)
        receiver.kill()
        try receiver.start()
        #expect(try receiver.ids("places") == ["d"])
        try FileManager.default.removeItem(atPath: partition)
        #expect(receiver.terminate() == 0)
        try receiver.start()
        #expect(try post(receiver, ["a", "e"])?.body.contains(#""duplicates":1"#) == true)
        receiver.kill()
        try receiver.start()
        #expect(try receiver.ids("places") == ["e"])
        // A file that comes back is unchanged.
        #expect(receiver.terminate() == 0)
        try FileManager.default.removeItem(atPath: partition)
        try receiver.start()
        #expect(receiver.terminate() == 0)
        try FileManager.default.moveItem(atPath: archive.path + "/kept", toPath: partition)
        try receiver.start()
        #expect(try receiver.ids("places").first == "a")
    }

    /// A nightly archive job and a device that is behind: the new file must not start with a hole.
    @Test func fileMovedDuringWrite_leavesNoHole() throws {
        let (folder, place) = (TemporaryFolder(), "stream=places/date=2026-11-21/device=d1")
        let body = Spool(folder: folder.path, memory: 1 << 20)
        try RawRequest.batch(["a"]).withUnsafeBytes(body.append)
        try body.withView { body in
            let batch = try IncomingBatch(checking: body)
            let files = BatchFiles(in: DurableFolders(folder.path), lengths: [place: 100])
            #expect(throws: Failure.self) {
                try batch.forEachRecord(of: body) {
                    try files.append($0, of: batch, body, isAhead: false)
                }
                try files.finish()
            }
            files.undo()
        }
        #expect(fileSize("\(folder.path)/\(place)/records.ndjson") == 0)
    }

    /// As some editors do, which write no newline at the end.
    @Test func lastLineThatWasLeftOpen_takesNoRecordWithIt() throws {
        let receiver = try ReceiverProcess()
        #expect(try post(receiver, ["a", "b"])?.status == 200)
        let file = receiver.folder + "/stream=places/date=2026-11-21/device=d1/records.ndjson"
        let lines = try Data(contentsOf: URL(fileURLWithPath: file))
        try lines.dropLast().write(to: URL(fileURLWithPath: file))
        #expect(try post(receiver, ["c"])?.status == 200)
        #expect(try receiver.ids("places") == ["a", "b", "c"])
        receiver.kill()
        try receiver.start()
        #expect(try post(receiver, ["d"])?.status == 200)
        #expect(try receiver.ids("places") == ["a", "b", "c", "d"])
    }

    @Test func health_ignoresIndexLock_andCountsSurviveARestart() throws {
        let receiver = try ReceiverProcess()
        #expect(try post(receiver, ["a", "b"])?.status == 200)
        receiver.kill()
        try receiver.start()
        let script = """
            import sqlite3, sys
            held = sqlite3.connect(sys.argv[1], isolation_level=None)
            held.execute("BEGIN IMMEDIATE")
            print("held", flush=True)
            sys.stdin.read()
            """
        let (input, output) = (Pipe(), Pipe())
        let holder = try Process.started(
            "/usr/bin/python3",
            ["-c", script, receiver.folder + "/.receiver.sqlite"],
            input: input,
            output: output
        )
        _ = output.fileHandleForReading.availableData
        let waiting = try RawClient(receiver)
        let body = RawRequest.batch(["c"])
        waiting.send(Array(RawRequest.head(length: body.count).utf8) + body)
        let client = try RawClient(receiver)
        client.send(RawRequest.health)
        #expect(client.answer()?.body.contains(#""batches":1,"ok":true,"records":2"#) == true)
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        #expect([200, 500].contains(waiting.answer()?.status))
    }
}

/// A disk that fails on demand, by a preloaded library that intercepts system calls.
struct FailingDisk {
    let environment: [String: String]
    private let control: FileHandle

    /// For paths below `data` in this folder.
    init(in folder: TemporaryFolder) throws {
        let library = folder.path + "/faults.so"
        let source = Tree.path("Tests/FieldFaults/fieldfaults.c")
        let compiler = try Process.run(
            "/usr/bin/env",
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"]
        )
        try #require(compiler.status == 0, "\(compiler.error)")
        let path = folder.path + "/control"
        try Data(count: 64).write(to: URL(fileURLWithPath: path))
        control = try #require(FileHandle(forUpdatingAtPath: path))
        environment = [
            "LD_PRELOAD": library, "FIELDFAULTS_DIR": folder.path + "/data",
            "FIELDFAULTS_CONTROL": path,
        ]
    }

    struct Change {
        var kind: Character
        var inode: UInt64
        var offset: UInt64
        /// Bytes that were written.
        var length: UInt64
    }

    /// Parses `FIELDFAULTS_LOG`: 56 bytes per change, then its paths and data (fieldfaults.c,
    /// `struct entry`).
    static func changes(in log: String) throws -> [Change] {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: log)))
        func number(_ place: Int, _ count: Int) -> UInt64 {
            bytes[place..<(place + count)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        var changes: [Change] = []
        var place = 0
        while place + 56 <= bytes.count {
            let kind = Character(UnicodeScalar(bytes[place + 52]))
            let (inode, offset) = (number(place + 8, 8), number(place + 16, 8))
            let (length, paths) = (number(place + 24, 8), number(place + 48, 4))
            let data = kind == "w" ? Int(length) : 0
            changes.append(Change(kind: kind, inode: inode, offset: offset, length: UInt64(data)))
            place += 56 + Int(paths & 0xFFFF) + Int(paths >> 16) + data
        }
        return changes
    }

    /// Makes every write fail with this code from now on; 0 ends it.
    func fail(_ code: Int32) throws { try set(code, at: 0) }

    /// Makes every fsync fail with this code.
    func failSyncs(_ code: Int32) throws { try set(code, at: 8) }

    private func set(_ code: Int32, at place: UInt64) throws {
        try control.seek(toOffset: place)
        try control.write(contentsOf: withUnsafeBytes(of: Int64(code)) { Data($0) })
    }
}
