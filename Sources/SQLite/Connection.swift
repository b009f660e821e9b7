// One owner for a SQLite connection and for each prepared statement.
import CSQLite

/// An open database connection; closed with its owner.
///
/// Statements must go first.
package struct Connection: ~Copyable {
    private let handle: OpaquePointer
    private let cache: StatementCache

    /// Bytes of the longest row.
    private static let longestValue: Int32 = 64 << 20

    package enum Access {
        case readWrite
        case readOnly
    }

    /// `vfs`: the name of the file system layer that SQLite is to use; nil for its own.
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
        // Not where it is declared: Swift 6.0 falls over a value that a throw leaves half made.
        cache = StatementCache()
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 5000)
        // A damaged length is told as such, instead of so much memory being asked for.
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.longestValue)
        // A reader that closes last would delete the journal by its name, which may be another's by then.
        if access == .readOnly { keepJournal() }
    }

    deinit {
        cache.close()
        sqlite3_close_v2(handle)
    }

    /// Writes a copy of the database, as of the last commit, to a new file; also of one that was deleted.
    package func copy(to path: String) throws(SQLiteError) {
        let statement = try prepare("VACUUM INTO ?")
        try statement.bind(path, at: 1)
        try statement.run()
    }

    /// Closing it will neither write the journal back nor delete it.
    package func keepJournal() { _ = waypost_keep_journal(handle) }

    /// Ends what this connection is doing, from another thread; not to be used once it is closed.
    package var interrupter: Interrupter { Interrupter(handle: handle) }

    /// How long a statement waits for another connection's lock.
    package func waitForOthers(milliseconds: Int32) {
        sqlite3_busy_timeout(handle, milliseconds)
    }

    /// Runs statements that return nothing.
    package func execute(_ sql: String) throws(SQLiteError) {
        try check(sqlite3_exec(handle, sql, nil, nil, nil), sql)
    }

    /// Runs what a start does without on a full disk, which must open all the same, or nothing could be deleted.
    package func executeIfThereIsRoom(_ sql: String) throws(SQLiteError) {
        do throws(SQLiteError) {
            try execute(sql)
        } catch {
            guard error.isFull else { throw error }
        }
    }

    /// A statement that was prepared before is used again.
    package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        // Most pragmas act as they are prepared.
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

    /// The first column of the first row as an integer; nil without a row, or where it is NULL.
    package func integer(_ sql: String, _ values: Int64...) throws(SQLiteError) -> Int64? {
        let statement = try prepare(sql)
        try statement.bind(values, from: 1)
        guard try statement.step() else { return nil }
        return statement.integer(0)
    }

    /// Runs one statement with integer parameters.
    package func run(_ sql: String, _ values: Int64?...) throws(SQLiteError) {
        let statement = try prepare(sql)
        try statement.bind(values, from: 1)
        _ = try statement.step()
    }

    package var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    /// Rows changed by the last statement.
    package var changes: Int { Int(sqlite3_changes64(handle)) }

    /// False inside a transaction; SQLite ends one by itself on some errors (FULL, IOERR).
    package var isAutocommit: Bool { sqlite3_get_autocommit(handle) != 0 }

    // MARK: The file itself, whatever stands in it

    // Closing a descriptor of one's own would drop the locks that SQLite has on the same file (fcntl(2)).

    /// Reads some of its bytes; false where they could not be read.
    package func readFile(at place: Int64, into bytes: inout [UInt8]) -> Bool {
        waypost_read_file(handle, place, &bytes, Int32(bytes.count)) == SQLITE_OK
    }

    /// Makes it so long, and waits until it is on the disk; false where that could not be done.
    package func cutFile(to bytes: Int64) -> Bool { waypost_cut_file(handle, bytes) == SQLITE_OK }

    /// Makes its journal at least so long, with zeros, which SQLite overwrites; false where that could not be done.
    ///
    /// To be used while nobody else writes.
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

/// Ends the statement that a connection is running.
package struct Interrupter: @unchecked Sendable {
    // Unchecked because sqlite3_interrupt may be called from any thread while the connection is open.
    fileprivate let handle: OpaquePointer

    package func interrupt() { sqlite3_interrupt(handle) }
}

/// A prepared statement; with its owner it ends what it was doing.
///
/// Parameters count from 1 and columns from 0, as in SQLite.
package struct Statement: ~Copyable {
    private let handle: OpaquePointer
    private let sql: String
    /// Where it goes to be used again.
    private let cache: StatementCache?

    fileprivate init(owning handle: OpaquePointer, _ sql: String, _ cache: StatementCache?) {
        self.handle = handle
        self.sql = sql
        self.cache = cache
    }

    deinit {
        if let cache { cache.put(handle, sql) } else { sqlite3_finalize(handle) }
    }

    /// Moves to the next row; false at the end.
    package func step() throws(SQLiteError) -> Bool {
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        throw failure(code)
    }

    /// Makes it ready to run again.
    package func reset() {
        sqlite3_reset(handle)
    }

    /// Runs it once to its end and makes it ready again.
    package func run() throws(SQLiteError) {
        defer { sqlite3_reset(handle) }
        while try step() {}
    }

    package func bind(_ value: Int64?, at index: Int32) throws(SQLiteError) {
        guard let value else { return try check(sqlite3_bind_null(handle, index)) }
        try check(sqlite3_bind_int64(handle, index, value))
    }

    /// Binds integers to parameters in a row.
    package func bind(_ values: [Int64?], from first: Int32) throws(SQLiteError) {
        var index = first
        for value in values {
            try bind(value, at: index)
            index += 1
        }
    }

    package func bind(_ value: Double?, at index: Int32) throws(SQLiteError) {
        guard let value else { return try check(sqlite3_bind_null(handle, index)) }
        try check(sqlite3_bind_double(handle, index, value))
    }

    package func bind(_ text: String, at index: Int32) throws(SQLiteError) {
        let utf8 = Array(text.utf8)
        let code = utf8.withUnsafeBytes { bytes in
            // An empty array has no base address, which SQLite would take for NULL.
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            return start.map { waypost_bind_text(handle, index, $0, Int32(bytes.count)) }
                ?? waypost_bind_text(handle, index, "", 0)
        }
        try check(code)
    }

    package func bind(_ data: [UInt8]?, at index: Int32) throws(SQLiteError) {
        guard let data else { return try check(sqlite3_bind_null(handle, index)) }
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

    /// The column as an integer, 0 where it is NULL; for columns declared NOT NULL.
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
