// Which codes were given out, and which devices have a token for one: a database of its own beside the records.
internal import CLinux
package import Foundation
import Glibc
import SQLite

/// A code as `codes list` shows it; the code itself is not kept.
package struct CodeEntry: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case open
        case expired
        /// The device that has a token for it.
        case used(by: String)
    }

    package var id: Int64
    package var expires: Date
    package var state: State
}

/// Codes, each good for one device and once, and the tokens that they were exchanged for.
package final class Enrolments: @unchecked Sendable {
    // Unchecked because the database is used under `lock`, and what is known of it under `knownLock`.
    private let database: Connection
    private let lock = NSLock()
    /// Not held while a disk is waited for: each request asks for its token.
    private let knownLock = NSLock()
    private var tokens = KnownTokens()
    private var hasCodes = false

    /// Opens the database of a data directory, which the receiver may have open at the same time.
    package init(directory: String) throws {
        let path = "\(directory)/.receiver-enrolments.sqlite"
        try Self.make(path, in: directory)
        database = try Connection(path: path, access: .readWrite)
        // A journal that ends with each change: files of a second user's would be in the receiver's way.
        try database.execute("PRAGMA journal_mode=DELETE")
        try database.execute("PRAGMA synchronous=FULL")
        try database.execute(
            """
            CREATE TABLE IF NOT EXISTS codes(id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE,
            expires INTEGER NOT NULL, device TEXT);
            CREATE TABLE IF NOT EXISTS tokens(digest BLOB PRIMARY KEY, device TEXT NOT NULL) WITHOUT ROWID;
            """
        )
        let row = try database.prepare("SELECT digest, device FROM tokens")
        while try row.step() { tokens.add(digest: row.data(0), device: row.text(1)) }
    }

    /// For its owner alone; one that root makes belongs to the directory's owner.
    private static func make(_ path: String, in directory: String) throws {
        try FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true
        )
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw Trouble("open", path) }
        defer { close(number) }
        var folder = stat()
        if geteuid() == 0, stat(directory, &folder) == 0 {
            _ = fchown(number, folder.st_uid, folder.st_gid)
        }
    }

    // MARK: Codes

    /// A new code; it is on the disk when this returns.
    package func add(until expires: Date) throws -> (id: Int64, code: GivenSecret) {
        let code = GivenSecret.newCode()
        return try lock.withLock {
            let row = try database.prepare("INSERT INTO codes(digest, expires) VALUES (?,?)")
            try row.bind(code.digest, at: 1)
            try row.bind(Self.seconds(expires), at: 2)
            try row.run()
            return (try database.integer("SELECT last_insert_rowid()") ?? 0, code)
        }
    }

    package func list(at now: Date) throws -> [CodeEntry] { try lock.withLock { try entries(now) } }

    private func entries(_ now: Date) throws -> [CodeEntry] {
        let row = try database.prepare("SELECT id, expires, device FROM codes ORDER BY id")
        var entries: [CodeEntry] = []
        while try row.step() {
            let expires = row.required(1)
            let state: CodeEntry.State =
                if row.isText(2) {
                    .used(by: row.text(2))
                } else {
                    expires > Self.seconds(now) ? .open : .expired
                }
            let date = Date(timeIntervalSince1970: TimeInterval(expires))
            entries.append(CodeEntry(id: row.required(0), expires: date, state: state))
        }
        return entries
    }

    /// Ends a code that was not used; of one that was, what is known of it goes, and the device keeps its token.
    ///
    /// False where there is none.
    package func drop(_ id: Int64) throws -> Bool {
        try lock.withLock {
            try database.run("DELETE FROM codes WHERE id=?", id)
            return database.changes == 1
        }
    }

    // MARK: Devices

    /// A token for a code, which is used up by it; nil for a code that is not known, used or too old.
    ///
    /// Both are on the disk when this returns.
    func exchange(_ code: GivenSecret, for device: String, at now: Date) throws -> GivenSecret? {
        let token = try lock.withLock {
            try database.execute("BEGIN IMMEDIATE")
            do {
                let token = try take(code, for: device, at: now)
                try database.execute("COMMIT")
                return token
            } catch {
                try? database.execute("ROLLBACK")
                throw error
            }
        }
        guard let token else { return nil }
        knownLock.withLock { tokens.add(digest: token.digest, device: device) }
        return token
    }

    private func take(
        _ code: GivenSecret,
        for device: String,
        at now: Date
    ) throws -> GivenSecret? {
        guard let id = try find(code, at: now) else { return nil }
        let used = try database.prepare("UPDATE codes SET device=? WHERE id=?")
        try used.bind(device, at: 1)
        try used.bind(id, at: 2)
        try used.run()
        let token = GivenSecret.newToken()
        let row = try database.prepare("INSERT INTO tokens VALUES (?,?)")
        try row.bind(token.digest, at: 1)
        try row.bind(device, at: 2)
        try row.run()
        return token
    }

    /// Compares with each code that is open, in the same time whichever it is.
    private func find(_ code: GivenSecret, at now: Date) throws -> Int64? {
        let row = try database.prepare(
            "SELECT id, digest FROM codes WHERE device IS NULL AND expires > ?"
        )
        try row.bind(Self.seconds(now), at: 1)
        let digest = code.digest
        var found: Int64?
        while try row.step() {
            if GivenSecret.areEqual(row.data(1), digest) { found = row.required(0) }
        }
        return found
    }

    /// The device that has this token; nil where none has.
    func device(of token: GivenSecret) -> String? {
        knownLock.withLock { tokens }.device(of: token)
    }

    /// Whether codes were ever given out: then not any token will do.
    func isInUse() throws -> Bool {
        if knownLock.withLock({ hasCodes }) { return true }
        // AUTOINCREMENT remembers those that were dropped, too.
        let count = "SELECT count(*) FROM sqlite_sequence WHERE name='codes'"
        let isInUse = try lock.withLock { try database.integer(count) ?? 0 > 0 }
        if isInUse { knownLock.withLock { hasCodes = true } }
        return isInUse
    }

    private static func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970) }
}
