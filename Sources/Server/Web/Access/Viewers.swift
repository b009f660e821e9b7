// The people who may see the page: their tokens and their browsers' sessions.
package import FoundationEssentials
import SQLite
import ServerBase

/// The rights of a viewer: to read the pages, or also to name and set up devices.
package enum ViewerRole: String, CaseIterable, Sendable {
    case viewer
    case editor
}

/// A viewer as `viewers list` shows it.
package struct ViewerEntry: Sendable {
    package var name: String
    package var role: ViewerRole
    package var created: Date
    /// The number of browsers that are logged in.
    package var sessions: Int
}

/// The viewers' tokens, login links and sessions, stored as SHA-256.
///
/// A running receiver sees the changes of a command at the next request. Thread-safe.
package final class Viewers: Sendable {
    private struct Known: Sendable {
        var tokens = KnownTokens()
        /// Sessions by their digest; the value is the session's id, the key of `rights`.
        var sessions = KnownTokens()
        var rights: [String: (end: Int64, role: ViewerRole)] = [:]
        var isEmpty = true
    }

    /// After so many days a browser has to log in again.
    package static let sessionDays = 30
    /// The number of sessions per viewer; the oldest is deleted.
    private static let maxSessions = 20
    /// Seconds that a login link is valid.
    private static let linkSeconds: Int64 = 3600

    private let database: WatchedDatabase<Known>

    private static let tables = """
        PRAGMA foreign_keys=ON;
        CREATE TABLE IF NOT EXISTS viewers(name TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE,
        created INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS sessions(id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE,
        viewer TEXT NOT NULL REFERENCES viewers ON DELETE CASCADE, ends INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS editors(viewer TEXT PRIMARY KEY REFERENCES viewers ON DELETE CASCADE) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS links(digest BLOB PRIMARY KEY,
        viewer TEXT NOT NULL REFERENCES viewers ON DELETE CASCADE, ends INTEGER NOT NULL) WITHOUT ROWID;
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
        let session = try database.prepare(
            "SELECT digest, id, ends, viewer IN (SELECT viewer FROM editors) FROM sessions"
        )
        while try session.step() {
            known.sessions.add(digest: session.data(0), device: session.text(1))
            known.rights[session.text(1)] = (session.required(2), role(session.required(3)))
        }
        return known
    }

    private static func role(_ isEditor: Int64) -> ViewerRole { isEditor != 0 ? .editor : .viewer }

    /// See `WatchedDatabase`.
    package func refresh(waits: Bool) throws -> Bool { try database.refresh(waits: waits) }

    /// True if there is no viewer, and therefore no page.
    package var isEmpty: Bool { database.known.isEmpty }

    // MARK: Commands

    /// Creates a viewer and returns the token, shown once; nil if the name is taken.
    package func add(_ name: String, _ role: ViewerRole, at now: Date) throws -> GivenSecret? {
        let token = GivenSecret.newToken()
        return try database.change { database in
            let sql = "INSERT OR IGNORE INTO viewers VALUES (?,?,?)"
            try database.run(sql, name, token.digest, Self.seconds(now))
            guard database.changes == 1 else { return nil }
            if role == .editor { try database.run("INSERT INTO editors VALUES (?)", name) }
            return token
        }
    }

    /// Returns the secret of a new login link, which works once within an hour; nil if there is no
    /// such viewer.
    package func addLink(for name: String, at now: Date) throws -> GivenSecret? {
        let secret = GivenSecret.newToken()
        return try database.change { database in
            try database.run(
                "INSERT INTO links SELECT ?, name, ? FROM viewers WHERE name=?",
                secret.digest,
                Self.seconds(now) + Self.linkSeconds,
                name
            )
            return database.changes == 1 ? secret : nil
        }
    }

    package func list(at now: Date) throws -> [ViewerEntry] {
        let sql = """
            SELECT name, created, (SELECT count(*) FROM sessions WHERE viewer=name AND ends > ?),
            name IN (SELECT viewer FROM editors) FROM viewers ORDER BY name
            """
        return try database.ask { database in
            try database.rows(sql, Self.seconds(now)) { row in
                ViewerEntry(
                    name: row.text(0),
                    role: Self.role(row.required(3)),
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
    package func logIn(_ token: GivenSecret, at now: Date) throws -> GivenSecret? {
        guard let viewer = database.known.tokens.device(of: token) else { return nil }
        return try database.change { try Self.addSession(viewer, Self.seconds(now), $0) }
    }

    /// Creates a session for a login link and uses the link up; returns nil for one that is unknown,
    /// used or expired.
    package func logIn(link secret: GivenSecret, at now: Date) throws -> GivenSecret? {
        let (now, digest) = (Self.seconds(now), secret.digest)
        return try database.change { database in
            try database.run("DELETE FROM links WHERE ends <= ?", now)
            let link = try database.prepare("SELECT viewer FROM links WHERE digest=?", digest)
            guard try link.step() else { return nil }
            let viewer = link.text(0)
            try database.run("DELETE FROM links WHERE digest=?", digest)
            return try Self.addSession(viewer, now, database)
        }
    }

    private static func addSession(
        _ viewer: String,
        _ now: Int64,
        _ database: borrowing Connection
    ) throws -> GivenSecret {
        let session = GivenSecret.newToken()
        try database.run("DELETE FROM sessions WHERE ends <= ?", now)
        let sql = "INSERT INTO sessions(digest, viewer, ends) VALUES (?,?,?)"
        try database.run(sql, session.digest, viewer, now + Int64(sessionDays) * 86_400)
        try database.run(
            """
            DELETE FROM sessions WHERE viewer=?1 AND id NOT IN
            (SELECT id FROM sessions WHERE viewer=?1 ORDER BY id DESC LIMIT \(maxSessions))
            """,
            viewer
        )
        return session
    }

    package func isToken(_ token: GivenSecret) -> Bool {
        database.known.tokens.device(of: token) != nil
    }

    package func isLoggedIn(_ session: GivenSecret, at now: Date) -> Bool {
        role(of: session, at: now) != nil
    }

    /// Returns the role of a session's viewer; nil if it is not logged in.
    package func role(of session: GivenSecret, at now: Date) -> ViewerRole? {
        let known = database.known
        guard let id = known.sessions.device(of: session), let rights = known.rights[id],
            rights.end > Self.seconds(now)
        else { return nil }
        return rights.role
    }

    package func logOut(_ session: GivenSecret) throws {
        try database.change { database in
            try database.run("DELETE FROM sessions WHERE digest=?", session.digest)
        }
    }

    private static func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970) }
}
