// A look at a database from outside: does it open, and is it sound, as far as that shows in a given time.
import Host
import Records
import SQLite

/// What a look at a database found.
package enum DatabaseProbe: Sendable, Equatable {
    case sound
    case damaged(String)
    /// Nothing wrong in the part that there was time for.
    case unfinished
    /// Another program holds it.
    case held(String)
    case unreadable(String)

    /// Checks for at most `limit`; never writes.
    package init(_ path: String, limit: Duration) {
        do {
            let connection = try Connection(path: path, access: .readOnly)
            connection.waitForOthers(milliseconds: Int32(limit.milliseconds / 2))
            // A check that is kept from its first page says nothing.
            do throws(SQLiteError) {
                _ = try connection.integer("PRAGMA schema_version")
            } catch {
                if error.isBusy { throw error }
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
