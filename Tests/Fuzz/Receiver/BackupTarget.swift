// Fuzzes the restore of a backup whose marker and database somebody else wrote.
import Foundation
import FuzzSupport
import Host
import SQLite
import Support

@testable import ServerArchive

/// A backup whose rows and marker come from the input; shared by all inputs.
///
/// The input's first line is the marker, each further one a row: the path, a tab and the length.
final class HostileBackup: @unchecked Sendable {
    // Unchecked because one input is run at a time.
    static let shared = Result { try HostileBackup() }

    private static let day = "stream=s/date=2026-11-21/device=d/records.ndjson"
    private static let outside = "not the server's"
    private let place = TemporaryFolder("backups", "data", "fresh")
    private var backup: String { place.path + "/backups/b" }
    private var data: String { place.path + "/data/d" }

    private init() throws {
        _ = try archive(in: place.path + "/fresh")
        _ = try Backup(of: place.path + "/fresh", in: backup).run()
        try place.write(
            "{\"id\":\"a\",\"timestamp\":\"2026-11-21T04:30:07Z\"}\n",
            to: "backups/b/\(Self.day)"
        )
        for name in ["backups/outside", "data/outside"] { try place.write(Self.outside, to: name) }
    }

    private func archive(in folder: String) throws -> Archive {
        try Archive(directory: folder, bytesPerDay: 1 << 30, warn: { expectPlain($0) }) { _ in }
    }

    /// Restores it, and then starts on a data folder with the same rows; checks that both are refused
    /// or work, and touch nothing outside of the data folder.
    func receive(_ input: [UInt8]) throws {
        let lines = input.split(separator: 10, maxSplits: 8, omittingEmptySubsequences: false)
        try Data(lines[0]).write(to: URL(fileURLWithPath: "\(backup)/\(BackupFolder.marker)"))
        try replaceRows(of: backup, lines.dropFirst())
        defer { try? FileManager.default.removeItem(atPath: data) }
        do {
            for line in try Restore(backup, to: data).run() { expectPlain(line) }
            _ = try archive(in: data)
        } catch {
            expectPlain("\(error)")
        }
        try expectUntouched()
        try? FileManager.default.removeItem(atPath: data)
        try FileManager.default.copyItem(atPath: place.path + "/fresh", toPath: data)
        try replaceRows(of: data, lines.dropFirst())
        do { _ = try archive(in: data) } catch { expectPlain("\(error)") }
        try expectUntouched()
    }

    private func replaceRows(of folder: String, _ lines: ArraySlice<ArraySlice<UInt8>>) throws {
        let path = ArchiveFiles.index(in: folder)
        let database = try Connection(path: path, access: .readWrite)
        try database.execute("DELETE FROM files")
        for line in lines {
            let cells = line.split(separator: 9, maxSplits: 1)
            let length = cells.dropFirst().first.flatMap {
                Int64(String(decoding: $0, as: UTF8.self))
            }
            let name = String(decoding: cells.first ?? [], as: UTF8.self)
            try database.run("INSERT OR REPLACE INTO files VALUES (?,?)", name, length)
        }
    }

    private func expectUntouched() throws {
        var names = try place.files
        precondition(names == ["backups", "data", "fresh"])
        for folder in ["backups", "data"] {
            let text = try place.read("\(folder)/outside")
            precondition(text == Self.outside)
            names = try FileManager.default.contentsOfDirectory(atPath: "\(place.path)/\(folder)")
            precondition(Set(names).isSubset(of: ["b", "d", "outside"]))
        }
    }
}

/// A message that people see has no control characters of the backup.
private func expectPlain(_ message: String) {
    precondition(!message.unicodeScalars.contains { $0.value < 32 || $0.value == 127 })
}
