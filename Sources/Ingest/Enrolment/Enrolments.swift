// Which codes were given out, and which devices have a token for one: a database of its own beside the records.
internal import CLinux
package import FoundationEssentials
import Glibc
import Host
import SQLite
import Synchronization

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
///
/// Other processes change it, too (`codes`, `devices revoke`); a receiver that runs sees that at the next request.
package final class Enrolments: @unchecked Sendable {
    // Unchecked because the database is used under `lock`, and the one that is watched under `known`'s.
    private let database: Connection
    private let watched: Connection
    private let lock = Mutex(())
    /// Not held while a disk is waited for: each request asks for its token.
    private let known: Mutex<Known>

    private struct Known {
        var tokens = KnownTokens()
        /// Devices whose tokens were ended.
        var revoked: Set<String> = []
        var hasCodes = false
        /// What stood in the file when this was read.
        var change: [UInt8] = []
    }

    /// Opens the database of a data directory, which the receiver may have open at the same time.
    package init(directory: String) throws {
        let path = Self.path(in: directory)
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
            CREATE TABLE IF NOT EXISTS devices(device TEXT PRIMARY KEY, enrolled INTEGER, revoked INTEGER)
            WITHOUT ROWID;
            """
        )
        watched = try Connection(path: path, access: .readOnly)
        known = Mutex(Known())
        try load()
    }

    static func path(in directory: String) -> String { "\(directory)/.receiver-enrolments.sqlite" }

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
        return try lock.withLock { _ in
            let row = try database.prepare("INSERT INTO codes(digest, expires) VALUES (?,?)")
            try row.bind(code.digest, at: 1)
            try row.bind(Self.seconds(expires), at: 2)
            try row.run()
            return (try database.integer("SELECT last_insert_rowid()") ?? 0, code)
        }
    }

    package func list(at now: Date) throws -> [CodeEntry] {
        try lock.withLock { _ in try entries(now) }
    }

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
        try lock.withLock { _ in
            try database.run("DELETE FROM codes WHERE id=?", id)
            return database.changes == 1
        }
    }

    // MARK: Devices

    /// A token for a code, which is used up by it; nil for a code that is not known, used or too old.
    ///
    /// Both are on the disk when this returns. A device that was revoked is good again.
    func exchange(_ code: GivenSecret, for device: String, at now: Date) throws -> GivenSecret? {
        try lock.withLock { _ in
            let token = try transaction { try take(code, for: device, at: now) }
            guard let token else { return nil }
            known.withLock {
                $0.tokens.add(digest: token.digest, device: device)
                $0.revoked.remove(device)
            }
            return token
        }
    }

    private func transaction<Value>(_ body: () throws -> Value) throws -> Value {
        try database.execute("BEGIN IMMEDIATE")
        do {
            let value = try body()
            try database.execute("COMMIT")
            return value
        } catch {
            if !database.isAutocommit { try? database.execute("ROLLBACK") }
            throw error
        }
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
        let enrolled = try database.prepare("INSERT OR REPLACE INTO devices VALUES (?,?,NULL)")
        try enrolled.bind(device, at: 1)
        try enrolled.bind(Self.seconds(now), at: 2)
        try enrolled.run()
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
        known.withLock { $0.tokens }.device(of: token)
    }

    func isRevoked(_ device: String) -> Bool { known.withLock { $0.revoked.contains(device) } }

    /// Whether codes were ever given out: then not any token will do.
    func isInUse() -> Bool { known.withLock { $0.hasCodes } }

    /// Ends all tokens of a device, for every process; false for a device of which nothing is known here.
    ///
    /// It is on the disk when this returns. `isKnown`: it has sent something.
    package func revoke(_ device: String, isKnown: Bool, at now: Date) throws -> Bool {
        try lock.withLock { _ in
            try transaction {
                let isHere =
                    "SELECT 1 FROM tokens WHERE device=?1 UNION SELECT 1 FROM devices WHERE device=?1"
                let row = try database.prepare(isHere)
                try row.bind(device, at: 1)
                guard try row.step() || isKnown else { return false }
                row.reset()
                let tokens = try database.prepare("DELETE FROM tokens WHERE device=?")
                try tokens.bind(device, at: 1)
                try tokens.run()
                let mark = try database.prepare(
                    """
                    INSERT INTO devices VALUES (?,NULL,?)
                    ON CONFLICT(device) DO UPDATE SET revoked=coalesce(revoked, excluded.revoked)
                    """
                )
                try mark.bind(device, at: 1)
                try mark.bind(Self.seconds(now), at: 2)
                try mark.run()
                return true
            }
        }
    }

    /// What is known here of each device, by its id.
    package func devices() throws -> [String: DeviceToken] {
        try lock.withLock { _ in
            var devices: [String: DeviceToken] = [:]
            let held = try database.prepare("SELECT DISTINCT device FROM tokens")
            while try held.step() { devices[held.text(0)] = DeviceToken(isHeld: true) }
            let row = try database.prepare("SELECT device, enrolled, revoked FROM devices")
            while try row.step() {
                devices[row.text(0), default: DeviceToken(isHeld: false)].enrolled = row.integer(1)
                devices[row.text(0)]?.revoked = row.integer(2)
            }
            return devices
        }
    }

    // MARK: What other processes change

    /// Reads anew what another process has changed; false where the file is just being changed by one.
    ///
    /// On a thread that may not wait for a disk: `waits` is false.
    func refresh(waits: Bool) throws -> Bool {
        guard known.withLock({ $0.change != changeCount() }) else { return true }
        if waits {
            try lock.withLock { _ in try load() }
            return true
        }
        return try lock.withLockIfAvailable { _ in
            database.waitForOthers(milliseconds: 0)
            defer { database.waitForOthers(milliseconds: 5000) }
            do {
                try load()
                return true
            } catch let error as SQLiteError where error.isBusy {
                return false
            }
        } ?? false
    }

    /// A count in the file's header that each transaction moves (sqlite.org/fileformat2.html, 1.3.7).
    private func changeCount() -> [UInt8] {
        var count = [UInt8](repeating: 0, count: 4)
        return watched.readFile(at: 24, into: &count) ? count : []
    }

    private func load() throws {
        var new = Known()
        // Before the rows: what changes after it is read again.
        new.change = known.withLock { _ in changeCount() }
        let row = try database.prepare("SELECT digest, device FROM tokens")
        while try row.step() { new.tokens.add(digest: row.data(0), device: row.text(1)) }
        let ended = try database.prepare("SELECT device FROM devices WHERE revoked IS NOT NULL")
        while try ended.step() { new.revoked.insert(ended.text(0)) }
        // AUTOINCREMENT remembers those that were dropped, too.
        let count = "SELECT count(*) FROM sqlite_sequence WHERE name='codes'"
        new.hasCodes = try database.integer(count) ?? 0 > 0
        known.withLock { [new] in $0 = new }
    }

    private static func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970) }
}

/// The state of a device's token.
package struct DeviceToken: Sendable {
    /// It has one that it got for a code.
    package var isHeld: Bool
    /// Seconds since 1970; nil where it is not known.
    package var enrolled: Int64?
    /// Seconds since 1970; nil: it is not revoked.
    package var revoked: Int64?
}
