// The database of alerts: the reported state of each device, and the alerts still to be sent.
import SQLite
import ServerBase

/// Stores alert state and pending alerts; used by one thread.
///
/// A state change and its alerts are one transaction. An alert is deleted after it was sent, so a
/// process killed in between sends it again.
final class AlertBook {
    private let database: WatchedDatabase<[String: AlertMarks]>

    /// The `AlertMarks` of each device, and the pending alerts of each channel in order.
    private static let tables = """
        CREATE TABLE IF NOT EXISTS marks(device TEXT PRIMARY KEY, late INTEGER, came INTEGER, losing INTEGER,
        losing_calm INTEGER, critical INTEGER, critical_calm INTEGER) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS pending(channel TEXT, number INTEGER, alert TEXT NOT NULL,
        PRIMARY KEY (channel, number)) WITHOUT ROWID;
        """

    static func path(in directory: String) -> String {
        "\(directory)/.receiver-alerts.sqlite"
    }

    init(directory: String) throws {
        database = try WatchedDatabase(
            Self.path(in: directory),
            in: directory,
            tables: Self.tables,
            read: Self.readMarks
        )
    }

    /// Returns the state of each known device.
    func marks() throws -> [String: AlertMarks] {
        // Reloads if that failed after the last change.
        _ = try database.refresh(waits: true)
        return database.known
    }

    private static func readMarks(_ database: borrowing Connection) throws -> [String: AlertMarks] {
        var all: [String: AlertMarks] = [:]
        let row = try database.prepare("SELECT * FROM marks")
        while try row.step() {
            var marks = AlertMarks()
            marks.late = mark(row, 1)
            marks.losing = mark(row, 3)
            marks.critical = mark(row, 5)
            all[row.text(0)] = marks
        }
        return all
    }

    private static func mark(_ row: borrowing Statement, _ column: Int32) -> AlertMarks.Mark? {
        guard let since = row.integer(column) else { return nil }
        return AlertMarks.Mark(since: since, calm: row.integer(column + 1))
    }

    /// Stores state changes and new alerts; they are on the disk when this returns.
    ///
    /// `changed`: nil to forget a device; `alerts`: the new alerts of each channel.
    func record(
        _ changed: [String: AlertMarks?],
        _ alerts: [(channel: String, alerts: [Alert])]
    )
        throws
    {
        guard !changed.isEmpty || alerts.contains(where: { !$0.alerts.isEmpty }) else { return }
        try database.change { database in
            for (device, marks) in changed { try Self.put(marks, of: device, database) }
            let sql =
                "INSERT INTO pending SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM pending WHERE channel=?1"
            for (channel, alerts) in alerts {
                for alert in alerts { try database.run(sql, channel, alert.json) }
            }
        }
    }

    private static func put(
        _ marks: AlertMarks?,
        of device: String,
        _ database: borrowing Connection
    ) throws {
        guard let marks else {
            return try database.run("DELETE FROM marks WHERE device=?", device)
        }
        let row = try database.prepare(
            "INSERT OR REPLACE INTO marks VALUES (?,?,?,?,?,?,?)",
            device
        )
        let all = [marks.late, marks.losing, marks.critical]
        try row.bind(all.flatMap { [$0?.since, $0?.calm] }, from: 2)
        try row.run()
    }

    /// Returns a channel's oldest alert after a number.
    func first(for channel: String, after number: Int64) throws -> (
        number: Int64, alert: String
    )? {
        try database.ask { database in
            let row = try database.prepare(
                "SELECT number, alert FROM pending WHERE channel=? AND number>? ORDER BY number LIMIT 1",
                channel,
                number
            )
            return try row.step() ? (row.required(0), row.text(1)) : nil
        }
    }

    func remove(upTo number: Int64, of channel: String) throws {
        try database.change { database in
            let sql = "DELETE FROM pending WHERE channel=? AND number<=?"
            try database.run(sql, channel, number)
        }
    }

    /// Deletes the alerts of channels no longer in use: months later they would mislead.
    func keep(only channels: [String]) throws {
        try database.change { database in
            let found = try database.rows("SELECT DISTINCT channel FROM pending") { $0.text(0) }
            for channel in found where !channels.contains(channel) {
                try database.run("DELETE FROM pending WHERE channel=?", channel)
            }
        }
    }
}
