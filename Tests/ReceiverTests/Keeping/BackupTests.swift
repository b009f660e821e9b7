// Backups of a running server, and what a restored server knows.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerBase

@Suite struct BackupTests {
    private let place = TemporaryFolder("backups")
    private let receiver: ReceiverProcess
    private var backup: String { place.path + "/backup" }
    private var restored: String { place.path + "/restored" }

    init() throws { receiver = try ReceiverProcess() }

    /// Compares a data folder's database with its files, independently of the server's code; prints
    /// the number of records.
    private static let check = """
        import json, os, sqlite3, sys, uuid
        root = sys.argv[1]
        d = sqlite3.connect("file:%s/.receiver.sqlite?mode=ro" % root, uri=True)
        known = list(d.execute("SELECT owners.device, id FROM other_ids JOIN owners ON other_ids.device=number"))
        ranges = "SELECT owners.device, high, first, last FROM id_ranges JOIN owners ON id_ranges.device=number"
        for device, high, first, last in d.execute(ranges):
            known += [(device, str(uuid.UUID(int=(high + 2**63 << 64) + low + 2**63))) for low in range(first, last + 1)]
        assert len(known) == len(set(known)), "an id twice"
        known = set(known)
        lengths = dict(d.execute("SELECT path, length FROM files"))
        stored = []
        for folder, _, names in os.walk(root):
            if "records.ndjson" not in names: continue
            path = os.path.relpath(folder, root) + "/records.ndjson"
            data = open(root + "/" + path, "rb").read()
            assert lengths.pop(path) == len(data), (path, len(data))
            assert data.endswith(b"\\n"), path
            stored += [(folder.split("device=")[1], json.loads(line)["id"]) for line in data.splitlines()]
        assert not lengths, lengths
        assert len(stored) == len(set(stored)), "twice"
        assert known == set(stored), known ^ set(stored)
        print(len(stored))
        """

    /// Checks a folder that no server has opened yet; returns its number of records.
    private func records(in folder: String) throws -> Int {
        let outcome = try Process.run("/usr/bin/python3", ["-c", Self.check, folder])
        #expect(outcome.status == 0, "\(outcome.error)")
        return Int(outcome.output.trimmingCharacters(in: .newlines)) ?? -1
    }

    private func run(_ arguments: String...) throws -> Outcome {
        try Process.run(Tree.program("waypost-receiver"), arguments)
    }

    private func back() throws -> Outcome { try receiver.command("backup", backup) }

    private func restore(to folder: String) throws -> Outcome {
        try run("restore", backup, "--data", folder)
    }

    /// Backs up while clients upload, and kills some of the backups.
    @Test func backupsDuringUploads_restoreWhatTheirDatabaseKnows() throws {
        let clients = ManyClients(16, of: receiver)
        var counts: [Int] = []
        for round in 0..<6 {
            let before = clients.answered.value.count
            try waitUntil("answers") { clients.answered.value.count > before + 200 }
            if round % 2 == 1 {
                let killed = try Process.started(
                    Tree.program("waypost-receiver"),
                    ["backup", backup, "--data", receiver.folder]
                )
                // The archive's database is copied: the files are next.
                let new = backup + "/.receiver.sqlite.new"
                try waitUntil("a backup") {
                    FileManager.default.fileExists(atPath: new) || !killed.isRunning
                }
                killed.killAndWait()
            } else {
                let outcome = try back()
                #expect(outcome.status == 0, "\(outcome.error)")
                #expect(outcome.output.split(separator: "\n").count == 1)
                // The boundary holds in the backup itself, before `restore` applies it.
                #expect(try records(in: backup) > 0)
            }
            let folder = "\(restored)-\(round)"
            let outcome = try restore(to: folder)
            #expect(outcome.status == 0, "\(outcome.error)")
            counts.append(try records(in: folder))
        }
        try clients.finish()
        #expect(counts == counts.sorted() && counts[0] > 0)
        #expect(counts[4] > counts[0])
        let server = try ReceiverProcess(in: restored + "-5")
        // The same batches again, from the first on, under the same keys.
        let again = ManyClients(16, of: server)
        let all = clients.answered.value
        try waitUntil("the batches again", limit: .seconds(120)) {
            again.answered.value.isSuperset(of: all)
        }
        try again.finish()
        let ids = try server.ids("places")
        #expect(ids.count == Set(ids).count)
        #expect(Set(ids) == again.answered.value)
        #expect(!FileManager.default.fileExists(atPath: server.folder + "/.receiver-cut"))
    }

    @Test func secondBackup_copiesWhatIsNew() throws {
        for day in 10...19 {
            #expect(try receiver.send(time: "2026-11-\(day)T04:30:07.123Z") == 200)
        }
        try audio(of: receiver, named: "a.ogg", "sound")
        #expect(try back().output.contains("11 files"))
        #expect(try back().output.contains("0 bytes of 0 files"))
        let length = fileSize(receiver.folder + path(day: 12)) ?? 0
        #expect(try receiver.send(ids: ["new"], time: "2026-11-12T04:30:07.123Z") == 200)
        let added = (fileSize(receiver.folder + path(day: 12)) ?? 0) - length
        #expect(try back().output.contains(": \(added) bytes of 1 files"))
        // From now on the server refuses the token of the batches above.
        _ = try receiver.enrol("d7")
        #expect(try back().output.contains("0 bytes of 0 files"))
        try expectSecret("/.receiver-enrolments.sqlite")
        #expect(try restore(to: restored).status == 0)
        #expect(try records(in: restored) == 11)
        let sound = try String(
            contentsOfFile: restored + "/audio/places/2026-11-12/d1/a.ogg",
            encoding: .utf8
        )
        #expect(sound == "sound")
        #expect(try run("devices", "--data", restored).output.contains("d7"))
    }

    private func path(day: Int) -> String {
        "/stream=places/date=2026-11-\(day)/device=d1/records.ndjson"
    }

    private func audio(of receiver: ReceiverProcess, named name: String, _ text: String) throws {
        let folder = receiver.folder + "/audio/places/2026-11-12/d1"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        try text.write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
    }

    private func expectSecret(_ name: String) throws {
        let found = try FileManager.default.attributesOfItem(atPath: backup + name)
        #expect(found[.posixPermissions] as? Int == 0o600)
    }

    /// A person may move a day away; late records of it then begin a new file.
    @Test func fileThatBeganAgain_replacesItsCopy_whichIsKept() throws {
        _ = try receiver.send(ids: ["a", "b"])
        _ = try back()
        try FileManager.default.removeItem(atPath: receiver.folder + path(day: 21))
        #expect(try receiver.send(ids: ["c"]) == 200)
        #expect(try back().output.contains("1 changed files replaced"))
        let kept = try #require(
            FileManager.default.enumerator(atPath: backup + "/.receiver-replaced")
        ).compactMap { $0 as? String }.first { $0.hasSuffix("records.ndjson") }
        let lines = try String(
            contentsOfFile: "\(backup)/.receiver-replaced/\(kept ?? "")",
            encoding: .utf8
        )
        #expect(lines.contains("\"a\"") && lines.contains("\"b\""))
        #expect(try restore(to: restored).status == 0)
        let server = try ReceiverProcess(in: restored)
        #expect(try server.ids("places") == ["c"])
        // Known, though their lines were moved away.
        #expect(try server.send(ids: ["a", "b"]) == 200)
        #expect(try server.ids("places") == ["c"])
    }

    @Test func dayThatWasPrunedAndBeganAgain_keepsItsFormerCopy() throws {
        _ = try receiver.send(ids: ["a"])
        _ = try back()
        #expect(try receiver.command("prune", "--trust-clock", "--older-than", "1d").status == 0)
        _ = try back()
        #expect(try receiver.send(ids: ["b"]) == 200)
        #expect(try back().output.contains("1 changed files replaced"))
        #expect(try restore(to: restored).status == 0)
        #expect(try ReceiverProcess(in: restored).ids("places") == ["b"])
    }

    /// Its copy is shorter than the newest backup's database says.
    @Test func fileThatGrewAndWasMovedAway_doesNotStopARestore() throws {
        _ = try receiver.send(ids: ["a"])
        _ = try back()
        #expect(try receiver.send(ids: ["b"]) == 200)
        try FileManager.default.removeItem(atPath: receiver.folder + path(day: 21))
        let outcome = try back()
        #expect(outcome.output.contains("1 files were moved away"), "\(outcome.output)")
        #expect(outcome.output.contains("1 outdated copies"))
        #expect(try back().status == 0)
        let done = try restore(to: restored)
        #expect(done.status == 0, "\(done.error)")
        #expect(done.output.contains("1 files are not in the backup"))
    }

    @Test func audioOfDeletedDays_isNotRestored() throws {
        for day in [12, 13] {
            _ = try receiver.send(ids: ["\(day)"], time: "2026-11-\(day)T04:30:07.123Z")
        }
        try audio(of: receiver, named: "a.ogg", "sound")
        _ = try back()
        let day = "places/date=2026-11-12"
        try FileManager.default.removeItem(atPath: "\(receiver.folder)/stream=\(day)")
        try FileManager.default.removeItem(atPath: receiver.folder + "/audio")
        _ = try receiver.sql("DELETE FROM files WHERE path LIKE '%\(day)%'")
        #expect(try back().status == 0)
        #expect(fileSize(backup + "/audio/places/2026-11-12/d1/a.ogg") == 5)
        #expect(try restore(to: restored).status == 0)
        #expect(fileSize(restored + "/audio") == nil)
        #expect(try ReceiverProcess(in: restored).ids("places") == ["13"])
    }

    @Test func backup_refusesOtherFolders() throws {
        _ = try receiver.send(ids: ["a"])
        #expect(try receiver.command("backup", receiver.folder).status == 1)
        #expect(try receiver.command("backup", receiver.folder + "/backup").status == 1)
        let inside = try receiver.command("backup", receiver.folder + "/../")
        #expect(inside.error.contains("lie in each other"))
        TemporaryFolder.mark(place.path + "/other/mine.txt")
        let other = try receiver.command("backup", place.path + "/other")
        #expect(other.status == 1 && other.error.contains("not empty and not a backup"))
        #expect(
            try run("backup", backup, "--data", place.path).error.contains("no server has run")
        )
        _ = try back()
        let empty = try ReceiverProcess()
        #expect(try empty.command("backup", backup).error.contains("of another server"))
        #expect(try empty.send(ids: ["b", "c"]) == 200)
        #expect(try empty.command("backup", backup).error.contains("of another server"))
        #expect(try restore(to: restored).status == 0)
        #expect(try records(in: restored) == 1)
    }

    @Test func links_areNotFollowed() throws {
        _ = try receiver.send(ids: ["a"])
        TemporaryFolder.mark(place.path + "/secret/x.ogg")
        let files = FileManager.default
        try audio(of: receiver, named: "a.ogg", "sound")
        for name in ["audio/linked", "audio/places/2026-11-12/d1/b.ogg"] {
            try files.createSymbolicLink(
                atPath: receiver.folder + "/" + name,
                withDestinationPath: place.path + "/secret"
            )
        }
        let outcome = try back()
        #expect(outcome.status == 0 && outcome.output.contains("2 symbolic links not followed"))
        #expect(!files.fileExists(atPath: backup + "/audio/linked"))
        // A record file, too.
        #expect(try receiver.send(ids: ["c"], time: "2026-11-12T04:30:07.123Z") == 200)
        let day = receiver.folder + "/stream=places/date=2026-11-12"
        try files.moveItem(atPath: day, toPath: place.path + "/day")
        try files.createSymbolicLink(atPath: day, withDestinationPath: place.path + "/day")
        let linked = try back()
        #expect(linked.status == 0 && linked.output.contains("3 symbolic links"), "\(linked.error)")
        #expect(linked.output.contains("1 record files behind them"))
        // Neither in the backup, when a stream's folder leads elsewhere there.
        let stream = backup + "/stream=places"
        try files.moveItem(atPath: stream, toPath: place.path + "/moved")
        try files.createSymbolicLink(atPath: stream, withDestinationPath: place.path + "/moved")
        _ = try receiver.send(ids: ["b"])
        #expect(try back().error.contains("symbolic link"))
        #expect(fileSize(place.path + "/moved" + path(day: 21).dropFirst(14)) ?? 0 > 0)
        #expect(try !restore(to: restored).output.contains("restored"))
    }

    @Test func restore_neverReplacesWhatIsNewer() throws {
        _ = try receiver.send(ids: ["a"])
        _ = try back()
        _ = try receiver.send(ids: ["b"])
        let running = try receiver.command("restore", backup)
        #expect(running.status == 1 && running.error.contains("a server is running"))
        #expect(receiver.terminate() == 0)
        let newer = try receiver.command("restore", backup)
        #expect(newer.status == 1)
        #expect(
            newer.error.contains("newer") && newer.error.contains(String(path(day: 21).dropFirst()))
        )
        #expect(try receiver.ids("places") == ["a", "b"])
        try receiver.start()
        #expect(try receiver.ids("places") == ["a", "b"])
        _ = try back()
        #expect(receiver.terminate() == 0)
        // The same state: nothing is newer, and a lost file comes back.
        try FileManager.default.removeItem(atPath: receiver.folder + path(day: 21))
        #expect(try receiver.command("restore", backup).status == 0)
        #expect(try records(in: receiver.folder) == 2)
        #expect(try restore(to: restored).output.contains("sudo waypost resend --since 20"))
        #expect(try run("restore", place.path, "--data", restored).status == 1)
    }

    @Test func freshlyInstalledServer_getsAllOfTheBackup() throws {
        _ = try receiver.enrol("d7")
        #expect(try receiver.command("viewers", "add", "anna").status == 0)
        #expect(try receiver.command("label", "device", "d7", "--label", "Hut").status == 0)
        _ = try back()
        let fresh = try ReceiverProcess()
        #expect(fresh.terminate() == 0)
        #expect(try fresh.command("restore", backup).status == 0)
        #expect(try fresh.command("devices").output.contains("d7"))
        #expect(try fresh.command("viewers", "list").output.contains("anna"))
        #expect(try fresh.command("label", "device", "d7").output.contains("Hut"))
        // Again, as after an interruption.
        #expect(try fresh.command("restore", backup).status == 0)
        #expect(try fresh.command("viewers", "add", "bert").status == 0)
        let refused = try fresh.command("restore", backup)
        #expect(
            refused.status == 1 && refused.error.contains("move away: .receiver-viewers.sqlite")
        )
        #expect(try fresh.command("viewers", "list").output.contains("bert"))
    }

    @Test func interruptedRestore_startsNoServerThatCutsFiles() throws {
        _ = try receiver.send(ids: ["a"], time: "2026-11-12T04:30:07.123Z")
        _ = try receiver.send(ids: ["b"])
        _ = try back()
        let fresh = try ReceiverProcess()
        #expect(fresh.terminate() == 0)
        // The second file cannot be written.
        let obstacle = fresh.folder + path(day: 21)
        TemporaryFolder.mark(obstacle + "/x")
        #expect(try fresh.command("restore", backup).status == 1)
        #expect(fileSize(fresh.folder + path(day: 12)) ?? 0 > 0)
        #expect(throws: NeverHappened.self) { try fresh.start() }
        try FileManager.default.removeItem(atPath: obstacle)
        #expect(try fresh.command("restore", backup).status == 0)
        try fresh.start()
        #expect(try fresh.ids("places").sorted() == ["a", "b"])
        #expect(fileSize(fresh.folder + "/.receiver-cut") == nil)
    }

    @Test(.enabled(if: getuid() == 0)) func backupThatTheOwnerMayNotRead_namesTheRemedy() throws {
        _ = try receiver.send(ids: ["a"])
        _ = try back()
        TemporaryFolder.mark(restored + "/x")
        _ = try Process.run("/usr/bin/chown", ["-R", "65534:65534", restored])
        let outcome = try restore(to: restored)
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("run: sudo chown -R nobody: \(backup)"), "\(outcome.error)")
    }

    @Test func damagedBackup_isNotRestored() throws {
        _ = try receiver.send(ids: ["a"])
        _ = try back()
        #expect(truncate(backup + path(day: 21), 5) == 0)
        let outcome = try restore(to: restored)
        #expect(outcome.status == 1 && outcome.error.contains("holds 5 bytes"))
        #expect(!FileManager.default.fileExists(atPath: restored + "/.receiver.sqlite"))
    }
}
