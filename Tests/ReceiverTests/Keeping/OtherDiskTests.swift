// Data folders with a part on a separate disk.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerBase

@Suite(.enabled(if: TemporaryMount.isAllowed)) struct OtherDiskTests {
    /// File systems on folders of a test, unmounted with this object.
    private final class Mounts {
        private var paths: [String] = []

        func add(_ path: String) throws {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true
            )
            let done = try Process.run("/usr/bin/env", ["mount", "-t", "tmpfs", "none", path])
            try #require(done.status == 0, "\(done.error)")
            paths.append(path)
        }

        deinit {
            for path in paths { _ = try? Process.run("/usr/bin/env", ["umount", "-l", path]) }
        }
    }

    private let folder = TemporaryFolder()
    private let mounts = Mounts()

    private func prune(_ receiver: ReceiverProcess) throws -> Outcome {
        try receiver.command("prune", "--trust-clock", "--older-than", "90d")
    }

    @Test func eachFileSystem_isSyncedOnce() throws {
        try mounts.add(folder.path + "/audio")
        for name in ["a", "b", "audio/c", "audio/d"] { try folder.write("x", to: name) }
        let paths = ["a", "b", "audio/c", "audio/d", ""].map { "\(folder.path)/\($0)" }
        let synced = try onePathPerFileSystem(paths)
        #expect(synced.count == 2 && synced.contains { $0.contains("/audio/") })
    }

    @Test func daysAreDeleted_andOneThatCannotBe_keepsNoOther() throws {
        let receiver = try ReceiverProcess(in: folder.path + "/data")
        for day in ["01", "02", "03"] {
            let time = "2025-01-\(day)T04:30:07.123Z"
            #expect(try receiver.send(ids: [day], time: time) == 200)
        }
        try mounts.add(receiver.folder + "/audio")
        TemporaryFolder.mark(receiver.folder + "/audio/places/2025-01-01/d1/x.ogg")
        TemporaryFolder.mark(receiver.folder + "/audio/places/2025-01-02/d1/x.ogg")
        // The day's folder cannot be renamed.
        try mounts.add(receiver.folder + "/audio/places/2025-01-02")
        let done = try prune(receiver)
        #expect(done.status == 1 && done.output.contains("2 days (2025-01-01 to 2025-01-03)"))
        #expect(done.error.contains("places, 2025-01-02 was not deleted: rename"), "\(done.error)")
        #expect(try receiver.ids("places") == ["02"])
        #expect(
            try receiver.sql("SELECT path FROM files")
                == "[('stream=places/date=2025-01-02/device=d1/records.ndjson',)]\n"
        )
        let audio = try FileManager.default.contentsOfDirectory(atPath: receiver.folder + "/audio")
        #expect(audio == ["places"])
    }

    /// As a kill leaves it after the rename.
    @Test func folderThatWasBeingDeleted_isNoDataOfAStart() throws {
        let receiver = try ReceiverProcess(in: folder.path + "/data")
        #expect(try receiver.send(ids: ["a"]) == 200)
        for name in [
            "stream=places/.receiver-pruned-1/device=d1", "audio/places/.receiver-pruned-2",
        ] {
            TemporaryFolder.mark("\(receiver.folder)/\(name)/records.ndjson")
        }
        receiver.kill()
        try receiver.start()
        #expect(fileSize(receiver.folder + "/.receiver-cut") == nil)
        #expect(try receiver.command("backup", folder.path + "/backup").status == 0)
        #expect(fileSize(folder.path + "/backup/stream=places/.receiver-pruned-1") == nil)
        #expect(try prune(receiver).status == 0)
        #expect(fileSize(receiver.folder + "/stream=places/.receiver-pruned-1") == nil)
        #expect(fileSize(receiver.folder + "/audio/places/.receiver-pruned-2") == nil)
        #expect(try receiver.ids("places") == ["a"])
    }
}
