// Repairs the archive when the receiver starts, after a crash of the last process.
import Foundation
import Glibc
import Host
import SQLite
import ServerBase

enum Recovery {
    /// Cuts each file to its committed length; keeps a copy of the rest and reports it.
    ///
    /// A missing file was archived elsewhere; its row stays because it may come back. A file
    /// shorter than its committed length is an error.
    static func run(
        _ index: borrowing Connection,
        _ directory: String,
        warn: (String) -> Void
    ) throws {
        var tails: [TruncatedFiles.Tail] = []
        try dropForeignRows(index, warn: warn)
        let row = try index.prepare("SELECT path, length FROM files")
        while try row.step() { try look(row.text(0), row.required(1), directory, &tails) }
        // Files of a first batch that was never committed.
        let known = try index.prepare("SELECT 1 FROM files WHERE path=?")
        try forEachFile(in: directory) { file in
            guard ArchiveFile(path: file, length: 0) != nil else { return true }
            try known.bind(file, at: 1)
            if try !known.step() { try look(file, 0, directory, &tails) }
            known.reset()
            return true
        }
        if !tails.isEmpty { warn(TruncatedFiles.keep(tails, in: directory)) }
        for tail in tails {
            let path = "\(directory)/\(tail.file)"
            guard truncate(path, Int(tail.start)) == 0 else {
                throw SystemError.last("truncate", on: path)
            }
        }
        dropBodies(directory)
    }

    /// Deletes rows of paths that no archive has, as a hostile backup may bring them: they would lead
    /// to files outside of the directory.
    private static func dropForeignRows(_ index: borrowing Connection, warn: (String) -> Void)
        throws
    {
        let foreign = try index.rows("SELECT path FROM files") {
            ArchiveFile(path: $0.text(0), length: 0) == nil ? $0.text(0) : nil
        }
        for path in foreign { try index.run("DELETE FROM files WHERE path=?", path) }
        guard let first = foreign.first else { return }
        warn(
            "\(counted(foreign.count, "row")) of the index named files that no archive has, such as "
                + "\(printable(first)), and were deleted from it"
        )
    }

    private static func look(
        _ file: String,
        _ length: Int64,
        _ directory: String,
        _ tails: inout [TruncatedFiles.Tail]
    ) throws {
        let path = "\(directory)/\(file)"
        guard let size = fileSize(path) else { return }
        guard (0...size).contains(length) else {
            throw Failure(
                "\(path) holds \(size) bytes, \(length) were committed: restore it from a copy, or move it "
                    + "away to go on without it"
            )
        }
        if size > length { tails.append(TruncatedFiles.Tail(file: file, start: length, end: size)) }
    }

    static func hasRecords(_ directory: String) throws -> Bool {
        var isEmpty = true
        try forEachFile(in: directory) {
            isEmpty = !isRecordFile($0)
            return isEmpty
        }
        return !isEmpty
    }

    private static func isRecordFile(_ path: String) -> Bool { path.hasSuffix("/records.ndjson") }

    /// Calls `body` with each path below the streams' folders, until it returns false.
    private static func forEachFile(
        in directory: String,
        _ body: (String) throws -> Bool
    ) throws {
        for stream in names(inFolder: directory) where stream.hasPrefix("stream=") {
            guard let files = FileManager.default.enumerator(atPath: "\(directory)/\(stream)")
            else { continue }
            for case let name as String in files where !PrunedFolder.contains(name) {
                guard try body("\(stream)/\(name)") else { return }
            }
        }
    }

    /// Deletes request bodies of a process that was killed before it could unlink them.
    private static func dropBodies(_ directory: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where name.hasPrefix(Spool.prefix) { unlink("\(directory)/\(name)") }
    }
}
