// The people who may see the page: their tokens and their browsers' sessions.
package import FoundationEssentials
import SQLite

/// A viewer as `viewers list` shows it.
package struct ViewerEntry: Sendable {
    package var name: String
    package var created: Date
    /// The number of browsers that are logged in.
    package var sessions: Int
}

/// The viewers' tokens and sessions, stored as SHA-256.
///
/// A running receiver sees the changes of a command at the next request. Thread-safe.
package final class Viewers: Sendable {
    private struct Known: Sendable {
        var tokens = KnownTokens()
        /// Sessions by their digest; the value is the session's id, the key of `ends`.
        var sessions = KnownTokens()
        var ends: [String: Int64] = [:]
        var isEmpty = true
    }

    /// After so many days a browser has to log in again.
    static let sessionDays = 30
    /// The number of sessions per viewer; the oldest is deleted.
    private static let mostSessions = 20

    private let database: WatchedDatabase<Known>

    private static let tables = """
        PRAGMA foreign_keys=ON;
        CREATE TABLE IF NOT EXISTS viewers(name TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE,
        created INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS sessions(id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE,
        viewer TEXT NOT NULL REFERENCES viewers ON DELETE CASCADE, ends INTEGER NOT NULL);
        """

    /// Opens the database of a data directory, which the receiver may have open too.
    package init(directory: String) throws {
        let path = "\(directory)/.receiver-viewers.sqlite"
        database = try WatchedDatabase(path, in: directory, tables: Self.tables, read: Self.read)
    }

    @Sendable private static func read(_ database: borrowing Connection) throws -> Known {
        var known = Known()
        let viewer = try database.prepare("SELECT digest, name FROM viewers")
        while try viewer.step() {
            known.tokens.add(digest: viewer.data(0), device: viewer.text(1))
            known.isEmpty = false
        }
        let session = try database.prepare("SELECT digest, id, ends FROM sessions")
        while try session.step() {
            known.sessions.add(digest: session.data(0), device: session.text(1))
            known.ends[session.text(1)] = session.required(2)
        }
        return known
    }

    /// See `WatchedDatabase`.
    func refresh(waits: Bool) throws -> Bool { try database.refresh(waits: waits) }

    /// True if there is no viewer, and therefore no page.
    var isEmpty: Bool { database.known.isEmpty }

    // MARK: Commands

    /// Creates a viewer and returns the token, shown once; nil if the name is taken.
    package func add(_ name: String, at now: Date) throws -> GivenSecret? {
        let token = GivenSecret.newToken()
        return try database.change { database in
            let sql = "INSERT OR IGNORE INTO viewers VALUES (?,?,?)"
            try database.run(sql, name, token.digest, Self.seconds(now))
            return database.changes == 1 ? token : nil
        }
    }

    package func list(at now: Date) throws -> [ViewerEntry] {
        let sql = """
            SELECT name, created, (SELECT count(*) FROM sessions WHERE viewer=name AND ends > ?)
            FROM viewers ORDER BY name
            """
        return try database.ask { database in
            try database.rows(sql, Self.seconds(now)) { row in
                ViewerEntry(
                    name: row.text(0),
                    created: Date(timeIntervalSince1970: TimeInterval(row.required(1))),
                    sessions: Int(row.required(2))
                )
            }
        }
    }

    /// Deletes a viewer with the token and all sessions; returns false if there is none.
    package func drop(_ name: String) throws -> Bool {
        try database.change { database in
            try database.run("DELETE FROM viewers WHERE name=?", name)
            return database.changes == 1
        }
    }

    // MARK: Browsers

    /// Creates a session for a viewer's token; returns nil for an unknown token.
    func logIn(_ token: GivenSecret, at now: Date) throws -> GivenSecret? {
        guard let viewer = database.known.tokens.device(of: token) else { return nil }
        let session = GivenSecret.newToken()
        try database.change { database in
            let (now, digest) = (Self.seconds(now), session.digest)
            try database.run("DELETE FROM sessions WHERE ends <= ?", now)
            let sql = "INSERT INTO sessions(digest, viewer, ends) VALUES (?,?,?)"
            try database.run(sql, digest, viewer, now + Int64(Self.sessionDays) * 86_400)
            try database.run(
                """
                DELETE FROM sessions WHERE viewer=?1 AND id NOT IN
                (SELECT id FROM sessions WHERE viewer=?1 ORDER BY id DESC LIMIT \(Self.mostSessions))
                """,
                viewer
            )
        }
        return session
    }

    func isToken(_ token: GivenSecret) -> Bool { database.known.tokens.device(of: token) != nil }

    func isLoggedIn(_ session: GivenSecret, at now: Date) -> Bool {
        let known = database.known
        guard let id = known.sessions.device(of: session), let end = known.ends[id] else {
            return false
        }
        return end > Self.seconds(now)
    }

    func logOut(_ session: GivenSecret) throws {
        try database.change { database in
            try database.run("DELETE FROM sessions WHERE digest=?", session.digest)
        }
    }

    private static func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970) }
}
