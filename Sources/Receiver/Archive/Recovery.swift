// Repairs the archive when the receiver starts, after a crash of the last process.
import Foundation
import Glibc
import SQLite

enum Recovery {
    /// Cuts each file to its committed length; keeps a copy of the rest and reports it.
    ///
    /// A missing file was archived elsewhere; its row stays because it may come back. A file
    /// shorter than its committed length is an error.
    static func run(
        _ index: borrowing Connection,
        _ directory: String,
        tell: (String) -> Void
    ) throws {
        var tails: [TruncatedFiles.Tail] = []
        let row = try index.prepare("SELECT path, length FROM files")
        while try row.step() { try look(row.text(0), row.required(1), directory, &tails) }
        // Files of a first batch that was never committed.
        let known = try index.prepare("SELECT 1 FROM files WHERE path=?")
        try forEachRecordFile(in: directory) { file in
            try known.bind(file, at: 1)
            if try !known.step() { try look(file, 0, directory, &tails) }
            known.reset()
            return true
        }
        if !tails.isEmpty { tell(TruncatedFiles.keep(tails, in: directory)) }
        for tail in tails {
            let path = "\(directory)/\(tail.file)"
            guard truncate(path, Int(tail.start)) == 0 else { throw Trouble("truncate", path) }
        }
        dropBodies(directory)
    }

    private static func look(
        _ file: String,
        _ length: Int64,
        _ directory: String,
        _ tails: inout [TruncatedFiles.Tail]
    ) throws {
        let path = "\(directory)/\(file)"
        guard let size = fileSize(path) else { return }
        guard size >= length else {
            throw Trouble(
                "\(path) holds \(size) bytes, \(length) were committed: restore it from a copy, or move it "
                    + "away to go on without it"
            )
        }
        if size > length { tails.append(TruncatedFiles.Tail(file: file, start: length, end: size)) }
    }

    static func hasRecords(_ directory: String) throws -> Bool {
        var isEmpty = true
        try forEachRecordFile(in: directory) { _ in
            isEmpty = false
            return false
        }
        return !isEmpty
    }

    /// Calls `body` with each record file's path in the directory, until it returns false.
    private static func forEachRecordFile(
        in directory: String,
        _ body: (String) throws -> Bool
    ) throws {
        guard let names = FileManager.default.enumerator(atPath: directory) else { return }
        for case let name as String in names
        where name.hasPrefix("stream=") && name.hasSuffix("/records.ndjson") {
            guard try body(name) else { return }
        }
    }

    /// Deletes request bodies of a process that was killed before it could unlink them.
    private static func dropBodies(_ directory: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where name.hasPrefix(Spool.prefix) { unlink("\(directory)/\(name)") }
    }
}
