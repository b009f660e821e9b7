// Where accepted records are kept: files that people and engines read, and an index that knows what is in them.
import Foundation
import Glibc
import SQLite

/// What became of a batch.
struct Receipt: Sendable {
    var accepted: Int
    var duplicates: Int
}

/// Stores each record once, however often and in whatever batch it comes.
///
/// A batch is in the archive when the index's transaction is committed. Files are appended before that and
/// their committed lengths stand in the same transaction, so whatever a crash left behind is cut off at start.
actor Archive {
    private let directory: String
    private let index: Connection
    /// Held as long as the process lives.
    private let lock: Int32
    /// Folders whose names are known to be on the disk.
    private var durable: Set<String> = []

    init(directory: String) throws {
        self.directory = directory
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true
            )
        } catch {
            throw StartFailure("--data \(directory) cannot be made a folder", error)
        }
        guard access(directory, W_OK | X_OK) == 0 else {
            throw StartFailure(
                "--data \(directory) cannot be written",
                Trouble("access", directory)
            )
        }
        lock = try Self.lock(directory)
        let database = "\(directory)/.receiver.sqlite"
        if !FileManager.default.fileExists(atPath: database), !Self.dataFiles(directory).isEmpty {
            throw Trouble(
                "\(directory) has records but no \(database): restore it, or choose another --data"
            )
        }
        index = try Connection(path: database, access: .readWrite)
        try index.execute("PRAGMA journal_mode=WAL")
        try index.execute("PRAGMA synchronous=FULL")
        try index.execute(
            """
            CREATE TABLE IF NOT EXISTS batches(key TEXT PRIMARY KEY, accepted INTEGER, duplicates INTEGER)
            WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS records(id TEXT PRIMARY KEY) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS files(path TEXT PRIMARY KEY, length INTEGER) WITHOUT ROWID;
            """
        )
        try Self.recover(index, directory)
    }

    /// Records and batches stored.
    func counts() throws -> (records: Int64, batches: Int64) {
        (
            try index.integer("SELECT count(*) FROM records") ?? 0,
            try index.integer("SELECT count(*) FROM batches") ?? 0
        )
    }

    /// Stores what is new of a batch; all of it is on the disk when this returns.
    func store(_ batch: IncomingBatch) throws -> Receipt {
        // A key is one gateway's for one stream; two gateways may choose the same.
        let key = "\(batch.device)/\(batch.stream)/\(batch.key)"
        if let known = try receipt(of: key) { return known }
        try index.execute("BEGIN IMMEDIATE")
        do {
            let fresh = try claim(batch.records)
            for (date, records) in Dictionary(grouping: fresh, by: \.time.date) {
                try append(
                    records,
                    to: "stream=\(batch.stream)/date=\(date)/device=\(batch.device)"
                )
            }
            let receipt = Receipt(
                accepted: fresh.count,
                duplicates: batch.records.count - fresh.count
            )
            try remember(key, receipt)
            try index.execute("COMMIT")
            return receipt
        } catch {
            if !index.isAutocommit { try index.execute("ROLLBACK") }
            throw error
        }
    }

    private func receipt(of key: String) throws -> Receipt? {
        let row = try index.prepare("SELECT accepted, duplicates FROM batches WHERE key=?")
        try row.bind(key, at: 1)
        guard try row.step() else { return nil }
        return Receipt(accepted: Int(row.required(0)), duplicates: Int(row.required(1)))
    }

    private func remember(_ key: String, _ receipt: Receipt) throws {
        let row = try index.prepare("INSERT INTO batches VALUES (?,?,?)")
        try row.bind(key, at: 1)
        try row.bind(Int64(receipt.accepted), at: 2)
        try row.bind(Int64(receipt.duplicates), at: 3)
        try row.run()
    }

    /// The records whose id was never seen.
    private func claim(_ records: [IncomingRecord]) throws -> [IncomingRecord] {
        let row = try index.prepare("INSERT OR IGNORE INTO records VALUES (?)")
        return try records.filter { record in
            try row.bind(record.id, at: 1)
            try row.run()
            return index.changes == 1
        }
    }

    private func append(_ records: [IncomingRecord], to folder: String) throws {
        let path = "\(directory)/\(folder)"
        try makeFolder(folder)
        var lines: [UInt8] = []
        for record in records { lines += try line(record, folder: path) + [10] }
        let file = "\(folder)/records.ndjson"
        let length = try Self.length(of: file, in: directory, index)
        try Self.write(lines, to: "\(directory)/\(file)", at: length)
        let row = try index.prepare("INSERT OR REPLACE INTO files VALUES (?,?)")
        try row.bind(file, at: 1)
        try row.bind(length + Int64(lines.count), at: 2)
        try row.run()
        try Self.sync(path)
    }

    /// Makes a folder and those above it, each durable in the one above.
    private func makeFolder(_ folder: String) throws {
        var path = directory
        for part in folder.split(separator: "/") {
            let parent = path
            path += "/" + part
            let isNew = mkdir(path, 0o755) == 0
            guard isNew || errno == EEXIST else { throw Trouble("mkdir", path) }
            guard isNew || !durable.contains(path) else { continue }
            try Self.sync(parent)
            durable.insert(path)
        }
    }

    /// A record's line; sound goes into a file of its own, which the line names.
    private func line(_ record: IncomingRecord, folder: String) throws -> [UInt8] {
        guard let audio = record.audio else { return Self.oneLine(record.bytes) }
        let name = "\(record.time.compact)_\(record.id).\(audio.format)"
        try Self.write(Array(audio.data), to: "\(folder)/\(name)", at: 0)
        let fields = JSONScanner.members(record.bytes[...]).map { member in
            member.key == "audio_data"
                ? Array("\"audio_file\":\"\(name)\"".utf8)
                : member.writtenKey + Array(":".utf8) + member.value
        }
        let text = Array("{".utf8) + fields.joined(separator: Array(",".utf8)) + Array("}".utf8)
        return Self.oneLine(text)
    }

    /// In correct JSON line ends stand only between values, so they can be left out.
    private static func oneLine(_ json: [UInt8]) -> [UInt8] { json.filter { $0 != 10 && $0 != 13 } }

    // MARK: Files

    /// How many committed bytes of a file are still there: a person may have moved or emptied it.
    private static func length(
        of file: String,
        in directory: String,
        _ index: borrowing Connection
    ) throws -> Int64 {
        let row = try index.prepare("SELECT length FROM files WHERE path=?")
        try row.bind(file, at: 1)
        let committed = try row.step() ? row.required(0) : 0
        var status = stat()
        guard stat("\(directory)/\(file)", &status) == 0 else { return 0 }
        return min(committed, Int64(status.st_size))
    }

    /// Writes at an offset, cuts off what was behind it, and waits for the disk.
    private static func write(_ bytes: [UInt8], to path: String, at offset: Int64) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw Trouble("open", path) }
        defer { close(number) }
        var rest = bytes[...]
        var position = offset
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                pwrite(number, $0.baseAddress, $0.count, Int(position))
            }
            guard count > 0 else { throw Trouble("write", path) }
            rest = rest.dropFirst(count)
            position += Int64(count)
        }
        guard ftruncate(number, Int(position)) == 0, fsync(number) == 0 else {
            throw Trouble("fsync", path)
        }
    }

    private static func sync(_ folder: String) throws {
        let number = open(folder, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw Trouble("open", folder) }
        defer { close(number) }
        guard fsync(number) == 0 else { throw Trouble("fsync", folder) }
    }

    /// Cuts each file to what was committed; what was committed and is not there any more is an error.
    private static func recover(_ index: borrowing Connection, _ directory: String) throws {
        let row = try index.prepare("SELECT path, length FROM files")
        var committed: [String: Int64] = [:]
        while try row.step() { committed[row.text(0)] = row.required(1) }
        for (file, length) in committed {
            let path = "\(directory)/\(file)"
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let size = (attributes[.size] as? NSNumber)?.int64Value ?? 0
            guard size >= length else {
                throw Trouble(
                    "\(path) holds \(size) bytes, \(length) were committed: restore it from a copy"
                )
            }
            guard truncate(path, Int(length)) == 0 else { throw Trouble("truncate", path) }
        }
        // Files of a first batch that was never committed.
        for file in dataFiles(directory) where committed[file] == nil {
            let path = "\(directory)/\(file)"
            guard truncate(path, 0) == 0 else { throw Trouble("truncate", path) }
        }
    }

    /// The record files below a directory, by their paths in it.
    private static func dataFiles(_ directory: String) -> [String] {
        guard let names = FileManager.default.enumerator(atPath: directory) else { return [] }
        return names.compactMap { $0 as? String }.filter {
            $0.hasPrefix("stream=") && $0.hasSuffix("/records.ndjson")
        }
    }

    /// One receiver a directory: a second one's recovery would cut off what the first is writing.
    private static func lock(_ directory: String) throws -> Int32 {
        let path = "\(directory)/.receiver.lock"
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw Trouble("open", path) }
        guard flock(number, LOCK_EX | LOCK_NB) == 0 else {
            close(number)
            throw Trouble("\(directory): another receiver uses this directory")
        }
        return number
    }
}

/// A file that could not be written.
struct Trouble: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }

    init(_ call: String, _ path: String) {
        description = "\(call) \(path): \(String(cString: strerror(errno)))"
    }
}
