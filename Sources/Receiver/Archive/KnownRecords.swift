// The ids of the stored records, unique per device.
import SQLite

/// The tables `records` and `owners` of the archive's index; used inside its transactions.
///
/// An id counts only for the device that sent it, so that no device can block another's records by
/// using their ids first. Rows hold a number instead of the device's id, which would double the
/// table.
enum KnownRecords {
    static let schema = """
        CREATE TABLE IF NOT EXISTS records(id TEXT, device INTEGER, PRIMARY KEY (id, device)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS owners(number INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE);
        """

    /// Throws a Trouble for an index of a development version, in which ids had no device.
    static func check(_ index: borrowing Connection) throws {
        let column = "SELECT count(*) FROM pragma_table_info('records') WHERE name='device'"
        guard try index.integer(column) == 0 else { return }
        throw Trouble("the index was made by a development version; choose another --data")
    }

    /// Returns the number of a device, and creates one if needed.
    static func number(of device: String, _ index: borrowing Connection) throws -> Int64 {
        try index.run("INSERT OR IGNORE INTO owners(device) VALUES (?)", device)
        let row = try index.prepare("SELECT number FROM owners WHERE device=?", device)
        guard try row.step() else { throw Trouble("\(device) has no number in the index") }
        return row.required(0)
    }

    /// Returns a statement that adds an id (1) of a device (2) unless known; `changes` says which.
    static func claim(_ index: borrowing Connection) throws -> Statement {
        try index.prepare("INSERT OR IGNORE INTO records VALUES (?1, ?2)")
    }

    /// Returns a statement that has a row if an id (1) of a device (2) is known.
    static func question(_ index: borrowing Connection) throws -> Statement {
        try index.prepare("SELECT 1 FROM records WHERE id=?1 AND device=?2")
    }
}
