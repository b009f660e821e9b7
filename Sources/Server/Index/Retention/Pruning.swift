// Deletes whole days of records, also while a server writes to the same folder.
import CLinux
import Foundation
import Glibc
package import Host
import SQLite
import ServerArchive
import ServerBase

/// The deleted days of a stream, and their contents.
package struct PrunedStream: Sendable {
    package var stream: String
    /// The folders' days, in order.
    package var days: [String]
    package var files = 0
    package var bytes: Int64 = 0
}

/// Deletes days that are over for longer than a retention.
///
/// The folder of a day is renamed and its rows in `files` are deleted in one transaction of the
/// archive's database, in which the server cannot write; its content is deleted after that. The ids
/// of its records stay known, so that a gateway's late retry is answered as a duplicate and stores
/// nothing. A new record of such a day begins a new file, which the next run deletes. After a kill
/// at any point, the next run finishes the rest.
package struct Pruning {
    /// The milliseconds to wait for the server.
    ///
    /// SQLite has no queue of waiters: on a slow disk, a server that wrote without a pause took each
    /// turn for a minute.
    private static let busy: Int32 = 600_000

    private let directory: String
    private let retention: Retention
    /// Nil for all devices.
    private let device: String?
    private let now: WallTime

    /// A stream's day that is to be deleted.
    private struct OldDay: Hashable, Comparable {
        var stream: String
        var date: String

        static func < (left: Self, right: Self) -> Bool {
            (left.stream, left.date) < (right.stream, right.date)
        }
    }

    package init(
        _ directory: String,
        retention: Retention,
        device: String? = nil,
        at now: WallTime = SystemClock().wall()
    ) throws {
        guard fileSize(ArchiveFiles.index(in: directory)) != nil else {
            throw Failure(
                "no receiver has run on \(directory); set --data to the receiver's folder"
            )
        }
        guard device.map(isName) ?? true else {
            throw Failure("\(device ?? "") is not a device id")
        }
        (self.directory, self.retention, self.device, self.now) = (
            directory, retention, device, now
        )
    }

    /// Deletes the days, or only counts them; returns the streams that have some, by name.
    ///
    /// `stop` ends it early; the next run goes on. `warn`: receives a message for each day that
    /// could not be deleted; the others are.
    package func run(
        isDryRun: Bool = false,
        until stop: StopSignal? = nil,
        warn: (String) -> Void
    ) throws -> [PrunedStream] {
        if !isDryRun { emptyTrash() }
        var streams: [String: PrunedStream] = [:]
        for day in try oldDays() where stop?.isRaised != true {
            let (files, bytes) = contents(of: day)
            do {
                if !isDryRun { try delete(day) }
            } catch let error as SQLiteError where !error.isFull {
                throw error
            } catch {
                warn("\(day.stream), \(day.date) was not deleted: \(error)")
                continue
            }
            var stream = streams[day.stream] ?? PrunedStream(stream: day.stream, days: [])
            stream.files += files
            stream.bytes += bytes
            stream.days.append(day.date)
            streams[day.stream] = stream
        }
        if !isDryRun { try forgetInIndex() }
        return streams.values.sorted { $0.stream < $1.stream }
    }

    // MARK: The days

    /// Returns an error message if a named stream has never come; nil if all have.
    package func unknownStreams() throws -> String? {
        let database = try Connection(path: ArchiveFiles.index(in: directory), access: .readOnly)
        var known = Set(try database.rows("SELECT DISTINCT stream FROM streams") { $0.text(0) })
        for top in names(inFolder: directory) where top.hasPrefix("stream=") {
            known.insert(String(top.dropFirst(7)))
        }
        known.formUnion(names(inFolder: "\(directory)/audio"))
        let unknown = retention.streams.keys.filter { !known.contains($0) }.sorted()
        guard !unknown.isEmpty else { return nil }
        return "\(directory) has no stream \(unknown.joined(separator: ", ")); it has: "
            + (known.isEmpty ? "none yet" : known.sorted().joined(separator: ", "))
    }

    private func isOld(_ stream: String, _ date: String) -> Bool {
        // Both become parts of paths.
        guard let first = retention.firstDay(of: stream, at: now), isName(stream), Day(date) != nil
        else { return false }
        return date < first
    }

    /// Returns the old days in the folders and in the database, which may know files that were moved
    /// away.
    private func oldDays() throws -> [OldDay] {
        var days = Set(try rows().map { OldDay(stream: $0.stream, date: $0.date) })
        for top in names(inFolder: directory) where top.hasPrefix("stream=") {
            days.formUnion(self.days(of: String(top.dropFirst(7)), in: top, prefix: "date="))
        }
        for stream in names(inFolder: "\(directory)/audio") {
            days.formUnion(self.days(of: stream, in: "audio/\(stream)", prefix: ""))
        }
        // Folders on another disk, behind a link, are left alone.
        return days.filter { day in !folders(of: day).contains(where: isBehindLink) }.sorted()
    }

    private func days(of stream: String, in folder: String, prefix: String) -> [OldDay] {
        names(inFolder: "\(directory)/\(folder)").filter { $0.hasPrefix(prefix) }
            .map { OldDay(stream: stream, date: String($0.dropFirst(prefix.count))) }
            .filter { day in
                isOld(day.stream, day.date) && folders(of: day).contains(where: isFolder)
            }
    }

    /// Returns the old files that the database knows.
    private func rows() throws -> [ArchiveFile] {
        let database = try Connection(path: ArchiveFiles.index(in: directory), access: .readOnly)
        return try database.rows("SELECT path, length FROM files") {
            ArchiveFile(path: $0.text(0), length: $0.required(1))
        }.filter { isOld($0.stream, $0.date) && $0.device == device ?? $0.device }
    }

    /// Returns the folders of a day with its records and its audio.
    private func folders(of day: OldDay) -> [String] {
        let (records, audio) = (
            "stream=\(day.stream)/date=\(day.date)", "audio/\(day.stream)/\(day.date)"
        )
        guard let device else { return [records, audio] }
        return ["\(records)/device=\(device)", "\(audio)/\(device)"]
    }

    private func contents(of day: OldDay) -> (files: Int, bytes: Int64) {
        var (files, bytes) = (0, Int64(0))
        for folder in folders(of: day) where isFolder(folder) {
            let path = "\(directory)/\(folder)"
            guard let names = FileManager.default.enumerator(atPath: path) else { continue }
            for case let name as String in names {
                guard fileKind("\(path)/\(name)") == S_IFREG,
                    let size = fileSize("\(path)/\(name)")
                else { continue }
                files += 1
                bytes += size
            }
        }
        return (files, bytes)
    }

    private func mode(_ path: String) -> mode_t { fileKind("\(directory)/\(path)") }

    private func isFolder(_ path: String) -> Bool { mode(path) == S_IFDIR }

    private func isBehindLink(_ path: String) -> Bool {
        var part = path
        while part != "." {
            if mode(part) == S_IFLNK { return true }
            part = folder(ofPath: part)
        }
        return false
    }

    // MARK: Deletion

    private func delete(_ day: OldDay) throws {
        mustHold(isOld(day.stream, day.date), "only a day past its retention is deleted")
        // Also after a failure: on a full disk this makes room for the next try.
        defer { emptyTrash() }
        let archive = try Connection(path: ArchiveFiles.index(in: directory), access: .readWrite)
        archive.waitForOthers(milliseconds: Self.busy)
        try archive.execute("PRAGMA synchronous=FULL")
        // The server waits for this transaction, so it deletes nothing itself.
        try archive.transaction { archive in
            try moveAway(folders(of: day).filter(isFolder))
            let records = folders(of: day)[0]
            // "0" follows "/".
            try archive.run(
                "DELETE FROM files WHERE path >= ? AND path < ?",
                "\(records)/",
                "\(records)0"
            )
        }
    }

    /// Renames folders, all or none, and deletes the folders around them that became empty.
    private func moveAway(_ folders: [String]) throws {
        var moved: [(from: String, to: String)] = []
        do {
            for folder in folders { moved.append((folder, try rename(folder))) }
        } catch {
            for one in moved { Glibc.rename("\(directory)/\(one.to)", "\(directory)/\(one.from)") }
            throw error
        }
        for name in folders {
            // On the disk before the rows are gone: a start would cut a file that has none.
            try syncFolder("\(directory)/\(folder(ofPath: name))")
            var parent = folder(ofPath: name)
            while parent != ".", rmdir("\(directory)/\(parent)") == 0 {
                parent = folder(ofPath: parent)
            }
        }
    }

    /// Renames a folder within its file system, which may be another than that of the directory.
    private func rename(_ name: String) throws -> String {
        for place in trashPlaces(of: name) {
            let new = "\(place)/\(PrunedFolder.prefix)\(UUID().uuidString)"
            if Glibc.rename("\(directory)/\(name)", "\(directory)/\(new)") == 0 { return new }
            guard errno == EXDEV else { break }
        }
        throw SystemError.last("rename", on: "\(directory)/\(name)")
    }

    /// Returns the folders that a day's folder may be renamed into, the directory first.
    private func trashPlaces(of name: String) -> [String] {
        let parts = name.split(separator: "/")
        let top = String(parts[0])
        return [".", top] + (top == "audio" ? ["\(top)/\(parts[1])"] : [])
    }

    /// Deletes what this run and earlier ones have renamed.
    private func emptyTrash() {
        let audio = names(inFolder: "\(directory)/audio").map { "audio/\($0)" }
        let streams = names(inFolder: directory).filter { $0.hasPrefix("stream=") }
        let files = FileManager.default
        for place in [".", "audio"] + streams + audio where !isBehindLink(place) {
            for name in (try? files.contentsOfDirectory(atPath: "\(directory)/\(place)")) ?? []
            where name.hasPrefix(PrunedFolder.prefix) {
                // The next run deletes what remains.
                try? files.removeItem(atPath: "\(directory)/\(place)/\(name)")
            }
        }
    }

    /// Deletes the rows of files that the archive does not have any more from the page's index.
    ///
    /// Not optimized, because the optimizer of Swift 6.0.3 crashes on it (CopyPropagation).
    @_optimize(none)
    private func forgetInIndex() throws {
        guard let reader = try FleetIndex.openToRead(in: directory) else { return }
        let old = try IndexWriter.files(reader).filter { _, file in
            isOld(file.stream, file.date) && file.device == device ?? file.device
        }
        guard !old.isEmpty else { return }
        let archive = try Connection(path: ArchiveFiles.index(in: directory), access: .readOnly)
        let index = try FleetIndex.open(in: directory)
        index.waitForOthers(milliseconds: Self.busy)
        let writer = IndexWriter(index, directory: directory)
        for (id, file) in old {
            try writer.database.transaction { _ in
                // A file that has come since is indexed only after this transaction.
                if try ArchiveFiles.length(file.path, archive) == nil { try writer.forget(id) }
            }
        }
    }
}
