// Checks from outside whether a database opens and is intact, within a time limit.
import Host
import Records
import SQLite

/// The result of inspecting a database from outside.
package enum DatabaseProbe: Sendable, Equatable {
    case sound
    case damaged(String)
    /// No damage found in the part that was checked in time.
    case unfinished
    /// Another process holds it.
    case held(String)
    /// A newer Waypost made it, and this one does not start with it.
    case tooNew(String)
    /// Another program made it, and Waypost leaves it alone.
    case foreign(String)
    case unreadable(String)

    /// Checks for at most `limit`; never writes.
    package init(_ path: String, limit: Duration) {
        do {
            let connection = try Connection(path: path, access: .readOnly)
            connection.waitForOthers(milliseconds: Int32(limit.milliseconds / 2))
            // A check that cannot read its first page because the database is busy proves nothing.
            do throws(SQLiteError) {
                _ = try connection.integer("PRAGMA schema_version")
            } catch {
                if error.isBusy { throw error }
            }
            // The two checks without which `run` does not open it.
            do {
                try Schema.check(connection)
            } catch let error as SchemaTooNewError {
                self = .tooNew("\(error)")
                return
            } catch let error as ForeignDatabaseError {
                self = .foreign("\(error)")
                return
            } catch let error as SQLiteError where error.isDamage {
                self = .damaged(error.message)
                return
            }
            switch connection.quickCheck(limit: limit, journal: path + "-wal") {
            case .sound: self = .sound
            case .damaged(let message): self = .damaged(message)
            case .unfinished: self = .unfinished
            }
        } catch {
            self =
                databaseHolder(of: path, after: error).map { .held($0) } ?? .unreadable("\(error)")
        }
    }
}
