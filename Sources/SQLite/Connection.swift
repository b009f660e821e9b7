// Owners of a SQLite connection and of its prepared statements.
import CSQLite

/// An open database connection; closed with its owner.
///
/// Release its statements first. Used by one thread only.
package struct Connection: ~Copyable {
    private let handle: OpaquePointer
    private let cache: StatementCache

    /// The longest row, in bytes.
    private static let longestValue: Int32 = 64 << 20

    package enum Access {
        case readWrite
        case readOnly
    }

    /// Opens a database; `vfs` names the file system layer of SQLite, nil for the default.
    package init(path: String, access: Access, vfs: String? = nil) throws(SQLiteError) {
        var handle: OpaquePointer?
        let mode =
            access == .readWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
        // NOMUTEX: each connection is used by one thread only.
        let code = sqlite3_open_v2(path, &handle, mode | SQLITE_OPEN_NOMUTEX, vfs)
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            sqlite3_close_v2(handle)
            throw SQLiteError(code: code, message: "\(path): \(message)", statement: "")
        }
        self.handle = handle
        // Not at its declaration: Swift 6.0 crashes over a value that a throw leaves partly
        // initialised.
        cache = StatementCache()
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 5000)
        // A damaged length is then reported as such instead of causing a huge allocation.
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.longestValue)
        // A reader that closes last would delete the WAL by name, which may belong to another
        // database by then.
        if access == .readOnly { keepJournal() }
    }

    deinit {
        cache.close()
        sqlite3_close_v2(handle)
    }

    /// Writes a copy of the last committed state to a new file; works even if the database was
    /// deleted.
    package func copy(to path: String) throws(SQLiteError) {
        let statement = try prepare("VACUUM INTO ?")
        try statement.bind(path, at: 1)
        try statement.run()
    }

    /// Makes closing neither checkpoint nor delete the WAL.
    package func keepJournal() { _ = waypost_keep_journal(handle) }

    /// Interrupts this connection's statement from another thread; do not use it after closing.
    package var interrupter: Interrupter { Interrupter(handle: handle) }

    /// Sets how long a statement waits for another connection's lock.
    package func waitForOthers(milliseconds: Int32) {
        sqlite3_busy_timeout(handle, milliseconds)
    }

    /// Runs statements that return nothing.
    package func execute(_ sql: String) throws(SQLiteError) {
        try check(sqlite3_exec(handle, sql, nil, nil, nil), sql)
    }

    /// Runs optional statements of a start; a full disk must not keep the database from opening, or
    /// nothing could be deleted.
    package func executeIfThereIsRoom(_ sql: String) throws(SQLiteError) {
        do throws(SQLiteError) {
            try execute(sql)
        } catch {
            guard error.isFull else { throw error }
        }
    }

    /// Returns a prepared statement, from the cache if it was prepared before.
    package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        // Most pragmas take effect while they are prepared.
        let cache = sql.hasPrefix("PRAGMA") ? nil : cache
        if let known = cache?.take(sql) { return Statement(owning: known, sql, cache) }
        var statement: OpaquePointer?
        try check(
            sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil),
            sql
        )
        guard let statement else {
            throw SQLiteError(code: SQLITE_MISUSE, message: "empty statement", statement: sql)
        }
        return Statement(owning: statement, sql, cache)
    }

    /// Returns a prepared statement with its first parameters bound.
    package func prepare(
        _ sql: String,
        _ values: (any SQLValue)?...
    ) throws(SQLiteError) -> Statement {
        let statement = try prepare(sql)
        try statement.bind(values, from: 1)
        return statement
    }

    /// Returns the first column of the first row; nil without a row or for NULL.
    package func integer(
        _ sql: String,
        _ values: (any SQLValue)?...
    ) throws(SQLiteError) -> Int64? {
        let statement = try prepare(sql)
        try statement.bind(values, from: 1)
        guard try statement.step() else { return nil }
        return statement.integer(0)
    }

    /// Runs one statement.
    package func run(_ sql: String, _ values: (any SQLValue)?...) throws(SQLiteError) {
        try run(sql, row: values)
    }

    /// Runs one statement with the values of a whole row.
    package func run(_ sql: String, row values: [(any SQLValue)?]) throws(SQLiteError) {
        let statement = try prepare(sql)
        assert(statement.parameters == values.count, "each parameter of a statement has a value")
        try statement.bind(values, from: 1)
        _ = try statement.step()
    }

    package var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    /// Rows changed by the last statement.
    package var changes: Int { Int(sqlite3_changes64(handle)) }

    /// False inside a transaction; SQLite ends one by itself on some errors (FULL, IOERR).
    package var isAutocommit: Bool { sqlite3_get_autocommit(handle) != 0 }

    // MARK: The raw file

    // A second descriptor on the file would, when closed, drop the locks that SQLite holds
    // (fcntl(2)).

    /// Reads bytes of the database file; returns false on an error.
    package func readFile(at place: Int64, into bytes: inout [UInt8]) -> Bool {
        waypost_read_file(handle, place, &bytes, Int32(bytes.count)) == SQLITE_OK
    }

    /// Truncates the file and fsyncs it; returns false on an error.
    package func cutFile(to bytes: Int64) -> Bool { waypost_cut_file(handle, bytes) == SQLITE_OK }

    /// Extends the WAL with zeros, which SQLite overwrites later; returns false on an error.
    ///
    /// Call it only while nobody else writes.
    package func lengthenJournal(to bytes: Int64) -> Bool {
        waypost_lengthen_journal(handle, bytes) == SQLITE_OK
    }

    private func check(_ code: Int32, _ sql: String) throws(SQLiteError) {
        guard code == SQLITE_OK else {
            throw SQLiteError(
                code: sqlite3_extended_errcode(handle),
                message: String(cString: sqlite3_errmsg(handle)),
                statement: sql
            )
        }
    }
}

/// Interrupts the statement that a connection is running.
package struct Interrupter: @unchecked Sendable {
    // Unchecked because any thread may call sqlite3_interrupt while the connection is open.
    fileprivate let handle: OpaquePointer

    package func interrupt() { sqlite3_interrupt(handle) }
}

/// A prepared statement; released with its owner, which ends what it was doing.
///
/// Parameters count from 1 and columns from 0, as in SQLite.
package struct Statement: ~Copyable {
    private let handle: OpaquePointer
    private let sql: String
    /// The cache it returns to; nil: it is finalised.
    private let cache: StatementCache?

    fileprivate init(owning handle: OpaquePointer, _ sql: String, _ cache: StatementCache?) {
        self.handle = handle
        self.sql = sql
        self.cache = cache
    }

    deinit {
        if let cache { cache.put(handle, sql) } else { sqlite3_finalize(handle) }
    }

    /// Moves to the next row; returns false at the end.
    package func step() throws(SQLiteError) -> Bool {
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        throw failure(code)
    }

    /// Returns what `value` makes of each row, without nil.
    package func compactMap<Value>(
        _ value: (borrowing Statement) throws -> Value?
    ) throws -> [Value] {
        var values: [Value] = []
        while try step() {
            if let value = try value(self) { values.append(value) }
        }
        return values
    }

    fileprivate var parameters: Int { Int(sqlite3_bind_parameter_count(handle)) }

    /// Makes the statement ready to run again.
    package func reset() {
        sqlite3_reset(handle)
    }

    /// Runs the statement to its end and resets it.
    package func run() throws(SQLiteError) {
        defer { sqlite3_reset(handle) }
        while try step() {}
    }

    package func bind(_ value: Int64?, at index: Int32) throws(SQLiteError) {
        guard let value else { return try bindNull(at: index) }
        try check(sqlite3_bind_int64(handle, index, value))
    }

    /// Binds values to consecutive parameters; nil is NULL.
    package func bind(_ values: [(any SQLValue)?], from first: Int32) throws(SQLiteError) {
        var index = first
        for value in values {
            if let value { try value.bind(to: self, at: index) } else { try bindNull(at: index) }
            index += 1
        }
    }

    private func bindNull(at index: Int32) throws(SQLiteError) {
        try check(sqlite3_bind_null(handle, index))
    }

    package func bind(_ value: Double?, at index: Int32) throws(SQLiteError) {
        guard let value else { return try bindNull(at: index) }
        try check(sqlite3_bind_double(handle, index, value))
    }

    package func bind(_ text: String, at index: Int32) throws(SQLiteError) {
        let utf8 = Array(text.utf8)
        let code = utf8.withUnsafeBytes { bytes in
            // An empty array has no base address, and SQLite would bind NULL.
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            return start.map { waypost_bind_text(handle, index, $0, Int32(bytes.count)) }
                ?? waypost_bind_text(handle, index, "", 0)
        }
        try check(code)
    }

    package func bind(_ data: [UInt8]?, at index: Int32) throws(SQLiteError) {
        guard let data else { return try bindNull(at: index) }
        let code = data.withUnsafeBytes {
            waypost_bind_blob(handle, index, $0.baseAddress, Int32($0.count))
        }
        try check(code)
    }

    package func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    package func isText(_ column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_TEXT
    }

    package func integer(_ column: Int32) -> Int64? {
        isNull(column) ? nil : sqlite3_column_int64(handle, column)
    }

    /// Returns the column as an integer, 0 for NULL; for columns declared NOT NULL.
    package func required(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    package func number(_ column: Int32) -> Double? {
        isNull(column) ? nil : sqlite3_column_double(handle, column)
    }

    package func text(_ column: Int32) -> String {
        sqlite3_column_text(handle, column).map { String(cString: $0) } ?? ""
    }

    package func data(_ column: Int32) -> [UInt8] {
        let count = Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw failure(code) }
    }

    private func failure(_ code: Int32) -> SQLiteError {
        let connection = sqlite3_db_handle(handle)
        return SQLiteError(
            code: sqlite3_extended_errcode(connection),
            message: String(cString: sqlite3_errmsg(connection)),
            statement: sql
        )
    }
}
