// The ids of the stored records, unique per device.
import SQLite

/// The tables `records` and `owners` of the archive's index; used inside its transactions.
///
/// An id counts only for the device that sent it, so that no device can block another's records by
/// using their ids first. Rows hold a number instead of the device's id, which would double the
/// table.
enum KnownRecords {
    /// Owns ids of an earlier version that are in no file any more; they count for every device.
    private static let anyDevice: Int64 = 0

    static let schema = """
        CREATE TABLE IF NOT EXISTS records(id TEXT, device INTEGER, PRIMARY KEY (id, device)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS owners(number INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE);
        """

    /// Returns the number of a device, and creates one if needed.
    static func number(of device: String, _ index: borrowing Connection) throws -> Int64 {
        let new = try index.prepare("INSERT OR IGNORE INTO owners(device) VALUES (?)")
        try new.bind(device, at: 1)
        try new.run()
        let row = try index.prepare("SELECT number FROM owners WHERE device=?")
        try row.bind(device, at: 1)
        guard try row.step() else { throw Trouble("\(device) has no number in the index") }
        return row.required(0)
    }

    /// Returns a statement that adds an id (1) of a device (2) unless known; `changes` says which.
    static func claim(_ index: borrowing Connection) throws -> Statement {
        try index.prepare(
            """
            INSERT INTO records SELECT ?1, ?2 WHERE NOT EXISTS
            (SELECT 1 FROM records WHERE id=?1 AND device IN (?2, \(anyDevice)))
            """
        )
    }

    /// Returns a statement that has a row if an id (1) of a device (2) is known.
    static func question(_ index: borrowing Connection) throws -> Statement {
        try index.prepare("SELECT 1 FROM records WHERE id=?1 AND device IN (?2, \(anyDevice))")
    }

    // MARK: An index of an earlier version

    /// Converts an index whose ids were unique over all devices: assigns each id to the device
    /// whose file contains it.
    ///
    /// One transaction, so an interrupted start begins again. Reads each file once.
    static func upgrade(
        _ index: borrowing Connection,
        _ directory: String,
        tell: (String) -> Void
    ) throws {
        let column = "SELECT count(*) FROM pragma_table_info('records') WHERE name='device'"
        guard try index.integer(column) == 0 else { return }
        tell("reading all files once, to note which device each record id belongs to")
        do {
            try index.execute("BEGIN IMMEDIATE; ALTER TABLE records RENAME TO earlier; \(schema)")
            try index.execute("INSERT INTO records SELECT id, \(anyDevice) FROM earlier")
            try index.execute("DROP TABLE earlier")
            for file in try files(index) { try assign(file, directory, index, tell: tell) }
            try index.execute("COMMIT")
        } catch {
            if !index.isAutocommit { try index.execute("ROLLBACK") }
            throw error
        }
    }

    private static func files(_ index: borrowing Connection) throws -> [ArchiveFile] {
        let row = try index.prepare("SELECT path, length FROM files")
        var files: [ArchiveFile] = []
        while try row.step() {
            if let file = ArchiveFile(path: row.text(0), length: row.required(1)) {
                files.append(file)
            }
        }
        return files
    }

    /// Assigns a file's ids; if it cannot be read, they still count for every device.
    private static func assign(
        _ file: ArchiveFile,
        _ directory: String,
        _ index: borrowing Connection,
        tell: (String) -> Void
    ) throws {
        do {
            try assign(file, directory, index)
        } catch let trouble as Trouble {
            tell("\(trouble); the ids of its records count for every device")
        }
    }

    private static func assign(
        _ file: ArchiveFile,
        _ directory: String,
        _ index: borrowing Connection
    ) throws {
        guard let lines = try LineFile.open("\(directory)/\(file.path)") else { return }
        let end = try min(file.length, lines.size())
        let row = try index.prepare(
            "UPDATE OR IGNORE records SET device=?1 WHERE id=?2 AND device=\(anyDevice)"
        )
        try row.bind(try number(of: file.device, index), at: 1)
        _ = try lines.forEachLine(from: 0, to: end, budget: .max) { line in
            guard let id = line.flatMap({ RecordLine($0)?.id }) else { return }
            try row.bind(id, at: 2)
            try row.run()
        }
    }
}
