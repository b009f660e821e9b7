// An error of SQLite, with its code and message.
import CSQLite

/// A failed SQLite call: extended result code, message and SQL (never the bound values).
package struct SQLiteError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The extended result code (sqlite.org/rescode.html).
    package var code: Int32
    package var message: String
    package var statement: String

    package init(code: Int32, message: String, statement: String) {
        self.code = code
        self.message = message
        self.statement = statement
    }

    /// The primary result code: the kind of error without its detail.
    package var primaryCode: Int32 { code & 0xFF }

    /// The disk or the configured maximum size is full.
    package var isFull: Bool {
        // The second is SQLITE_IOERR_SHMSIZE, a macro that Swift cannot import: no room for the WAL
        // index.
        primaryCode == SQLITE_FULL || code == SQLITE_IOERR | (19 << 8)
    }

    /// Another connection holds the lock.
    package var isBusy: Bool { primaryCode == SQLITE_BUSY }

    /// The database file is damaged.
    package var isDamage: Bool {
        // CONSTRAINT: a new id is already in use, so the tables contradict each other. TOOBIG: a
        // length that this program never writes. The last is SQLITE_IOERR_SHORT_READ, a macro that
        // Swift cannot import.
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CONSTRAINT, SQLITE_TOOBIG].contains(primaryCode)
            || code == SQLITE_IOERR | (2 << 8)
    }

    /// During opening: the database lacks the tables it should have.
    package var isForeign: Bool { primaryCode == SQLITE_ERROR }

    /// The disk failed, is full or is read-only.
    package var isDisk: Bool {
        [SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_FULL].contains(primaryCode)
    }

    package var description: String {
        let place = statement.isEmpty ? "" : " - while executing `\(statement)`"
        return "SQLite error \(code): \(message)\(place)"
    }
}
