// Whether the tables still are what they were made.
import Records
import SQLite

/// Compares the tables of a database with those of a new one.
///
/// Corruption can change the stored text of a table's declaration. SQLite's integrity check does not
/// notice: the rows are intact, but a column has another name, and every statement that uses it fails.
enum SchemaCheck {
    /// Tables and indexes of a new database: their declarations, and their columns.
    private static let expected: (declarations: Set<String>, shape: Set<String>) = {
        guard let fresh = try? Connection(path: ":memory:", access: .readWrite),
            (try? Schema.migrate(fresh)) != nil
        else { return ([], []) }
        return ((try? declarations(of: fresh)) ?? [], (try? shape(of: fresh)) ?? [])
    }()

    /// How an error begins that says that tables are not those of this version.
    static let difference = "not as it was made"

    /// Throws damage where one is missing or has other columns.
    static func check(_ connection: borrowing Connection) throws {
        // The same text is the same table; one that came from an older version may say it otherwise.
        if try declarations(of: connection).isSuperset(of: expected.declarations) { return }
        let missing = expected.shape.subtracting(try shape(of: connection))
        guard let first = missing.min() else { return }
        throw SQLiteError(code: 11, message: "\(difference): \(first)", statement: "")
    }

    /// Throws `ForeignDatabaseError` if there are tables, and none has the name of one of ours.
    static func refuseOthers(_ connection: borrowing Connection) throws {
        let names = try texts("SELECT name FROM sqlite_schema WHERE type='table'", connection)
            .filter { !$0.hasPrefix("sqlite_") }
        let isOurs = names.contains { name in
            expected.shape.contains { $0.hasPrefix("table \(name)(") }
        }
        guard let first = names.min(), !isOurs else { return }
        throw ForeignDatabaseError(table: first)
    }

    /// The version that the tables are of, whatever the header says; 0 for other tables.
    static func version(
        of connection: borrowing Connection,
        _ steps: [Schema.Step] = Schema.steps
    ) throws -> Int64 {
        let columns = try texts(
            """
            SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c
            WHERE m.type='table'
            """,
            connection
        )
        return Int64((steps.lastIndex { columns.contains($0.mark) } ?? -1) + 1)
    }

    /// Whether the tables are those of the newest version; those of user streams, health, effort and
    /// replies, which no schema step makes, do not count.
    static func isOurs(_ connection: borrowing Connection) throws -> Bool {
        let kinds = [DeviceHealth.kind, Effort.kind, JobReply.kind]
        let more = ["user_"] + kinds.map { "\($0.table)(" }
        return try shape(of: connection)
            .filter { line in !more.contains { line.hasPrefix("table \($0)") } } == expected.shape
    }

    private static func declarations(of connection: borrowing Connection) throws -> Set<String> {
        try texts(
            """
            SELECT type || ' ' || name || ' ' || tbl_name || ' ' || ifnull(sql, '') FROM sqlite_schema
            """,
            connection
        )
    }

    private static func shape(of connection: borrowing Connection) throws -> Set<String> {
        try texts(
            """
            SELECT m.type || ' ' || m.name || '(' || ifnull((SELECT group_concat(
                c.name || ' ' || c.type || ' ' || c."notnull" || c.pk, ', ')
                FROM pragma_table_info(m.name) c), '')
            || ifnull((SELECT group_concat(i.name, ', ') FROM pragma_index_info(m.name) i), '') || ')'
            FROM sqlite_schema m WHERE m.type IN ('table', 'index')
            """,
            connection
        )
    }

    private static func texts(
        _ sql: String,
        _ connection: borrowing Connection
    ) throws -> Set<String> {
        Set(try connection.prepare(sql).compactMap { $0.text(0) })
    }
}
