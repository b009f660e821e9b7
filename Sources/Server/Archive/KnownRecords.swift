// The ids of the stored records, unique per device.
import Host
import SQLite

/// The tables of ids in the archive's index; used inside its transactions.
///
/// An id counts only for the device that sent it, so that no device can block another's records by
/// using their ids first. Rows hold a number instead of the device's id, which would double the
/// tables. A gateway counts the ids of a stream up, so a row of `id_ranges` is a range of
/// consecutive UUIDs; ranges never touch. All other ids are rows of `other_ids`.
enum KnownRecords {
    static let schema = """
        CREATE TABLE IF NOT EXISTS owners(number INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE);
        CREATE TABLE IF NOT EXISTS id_ranges(device INTEGER, high INTEGER, first INTEGER, last INTEGER NOT NULL,
        PRIMARY KEY (device, high, first)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS other_ids(device INTEGER, id TEXT, PRIMARY KEY (device, id)) WITHOUT ROWID;
        """

    /// Throws a `Failure` for an index of a development version, which had a row for each id.
    static func check(_ index: borrowing Connection, of directory: String) throws {
        let table = "SELECT 1 FROM sqlite_schema WHERE name='records'"
        guard try index.integer(table) != nil else { return }
        throw Failure(
            "\(directory) is of a development version, whose list of record ids this version does not "
                + "read: choose another --data; the files in it stay readable as they are"
        )
    }

    /// Returns the number of a device, and creates one if needed.
    static func number(of device: String, _ index: borrowing Connection) throws -> Int64 {
        let number = "SELECT number FROM owners WHERE device=?"
        if let known = try index.integer(number, device) { return known }
        try index.run("INSERT INTO owners(device) VALUES (?)", device)
        return index.lastInsertedRow
    }
}
