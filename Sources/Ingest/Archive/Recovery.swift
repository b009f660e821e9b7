// What a start does about the end of the process before.
import Foundation
import Glibc
import SQLite

enum Recovery {
    /// Cuts each file to what was committed.
    ///
    /// One that is not there was archived away, and its row stays: it may come back. One that is shorter than what
    /// was committed is an error.
    static func run(_ index: borrowing Connection, _ directory: String) throws {
        let row = try index.prepare("SELECT path, length FROM files")
        while try row.step() { try cut("\(directory)/\(row.text(0))", to: row.required(1)) }
        // Files of a first batch that was never committed.
        let known = try index.prepare("SELECT 1 FROM files WHERE path=?")
        try forEachRecordFile(in: directory) { file in
            try known.bind(file, at: 1)
            if try !known.step() { try cut("\(directory)/\(file)", to: 0) }
            known.reset()
            return true
        }
        dropBodies(directory)
    }

    private static func cut(_ path: String, to length: Int64) throws {
        guard let size = fileSize(path) else { return }
        guard size >= length else {
            throw Trouble(
                "\(path) holds \(size) bytes, \(length) were committed: restore it from a copy, or move it "
                    + "away to go on without it"
            )
        }
        guard size == length || truncate(path, Int(length)) == 0 else {
            throw Trouble("truncate", path)
        }
    }

    static func hasRecords(_ directory: String) throws -> Bool {
        var isEmpty = true
        try forEachRecordFile(in: directory) { _ in
            isEmpty = false
            return false
        }
        return !isEmpty
    }

    /// The record files below a directory, by their paths in it, as long as `body` says.
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

    /// Bodies whose process was killed before their file had lost its name.
    private static func dropBodies(_ directory: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where name.hasPrefix(Spool.prefix) { unlink("\(directory)/\(name)") }
    }
}
