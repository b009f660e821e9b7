// An error of SQLite with its own code and words.
import CSQLite

/// What SQLite said: extended result code, message, and the statement (never its bound values).
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

    /// The low byte: the kind of error whatever the detail.
    package var primaryCode: Int32 { code & 0xFF }

    /// No room: the disk or the configured size is full.
    package var isFull: Bool {
        // The index of the journal had no room: SQLITE_IOERR_SHMSIZE, a macro that Swift cannot import.
        primaryCode == SQLITE_FULL || code == SQLITE_IOERR | (19 << 8)
    }

    /// Another connection has it.
    package var isBusy: Bool { primaryCode == SQLITE_BUSY }

    /// The file is not a sound database (any more).
    package var isDamage: Bool {
        // A number that is given out and there already: the books contradict each other; a length that nothing here
        // has. The last is SQLITE_IOERR_SHORT_READ, a macro that Swift cannot import.
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CONSTRAINT, SQLITE_TOOBIG].contains(primaryCode)
            || code == SQLITE_IOERR | (2 << 8)
    }

    /// At the start: a database without the tables it should have.
    package var isForeign: Bool { primaryCode == SQLITE_ERROR }

    /// The disk did not do it.
    package var isDisk: Bool {
        [SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_FULL].contains(primaryCode)
    }

    package var description: String {
        let place = statement.isEmpty ? "" : " - while executing `\(statement)`"
        return "SQLite error \(code): \(message)\(place)"
    }
}
