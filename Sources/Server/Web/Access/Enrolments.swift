// The enrolment codes and the devices' tokens, in a database next to the records.
package import FoundationEssentials
import SQLite
import ServerBase

/// A code as `codes list` shows it, without the code itself, which is not stored.
package struct CodeEntry: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case open
        case expired
        /// The device that exchanged it for a token.
        case used(by: String)
    }

    package var id: Int64
    package var expires: Date
    package var state: State
    package var terms: CodeTerms
}

/// The state of a device's token.
package struct DeviceToken: Sendable {
    /// True if it has a token that it got for a code.
    package var isHeld: Bool
    /// Seconds since 1970; nil if unknown.
    package var enrolled: Int64?
    /// The time its token last replaced an older one, in seconds since 1970; nil if never.
    package var replaced: Int64?
    /// Seconds since 1970; nil if it is not revoked.
    package var revoked: Int64?
}

/// Enrolment codes, each for one device and one use, and the tokens they were exchanged for.
///
/// Commands in other processes change them too (`codes`, `devices revoke`); a running receiver sees
/// that at the next request. Thread-safe.
package final class Enrolments: Sendable {
    private struct Known: Sendable {
        var tokens = KnownTokens()
        /// Devices whose tokens were revoked.
        var revoked: Set<String> = []
        /// True if a code was ever created, even if it was dropped since.
        var hasCodes = false
    }

    private let database: WatchedDatabase<Known>

    private static let tables = """
        CREATE TABLE IF NOT EXISTS codes(id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE,
        expires INTEGER NOT NULL, device TEXT);
        CREATE TABLE IF NOT EXISTS tokens(digest BLOB PRIMARY KEY, device TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS devices(device TEXT PRIMARY KEY, enrolled INTEGER, revoked INTEGER)
        WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS terms(code INTEGER PRIMARY KEY, device TEXT, replaces INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS replacements(device TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
        """

    /// Opens the database of a data directory, which the receiver may have open at the same time.
    package init(directory: String) throws {
        let path = "\(directory)/.receiver-enrolments.sqlite"
        database = try WatchedDatabase(path, in: directory, tables: Self.tables, read: Self.read)
    }

    @Sendable private static func read(_ database: borrowing Connection) throws -> Known {
        var known = Known()
        let row = try database.prepare("SELECT digest, device FROM tokens")
        while try row.step() { known.tokens.add(digest: row.data(0), device: row.text(1)) }
        let ended = try database.prepare("SELECT device FROM devices WHERE revoked IS NOT NULL")
        while try ended.step() { known.revoked.insert(ended.text(0)) }
        // AUTOINCREMENT also counts rows that were deleted.
        let count = "SELECT count(*) FROM sqlite_sequence WHERE name='codes'"
        known.hasCodes = try database.integer(count) ?? 0 > 0
        return known
    }

    /// See `WatchedDatabase`.
    package func refresh(waits: Bool) throws -> Bool { try database.refresh(waits: waits) }

    // MARK: Codes

    /// Creates codes; all are on the disk when this returns.
    package func add(_ count: Int = 1, until expires: Date, _ terms: CodeTerms = CodeTerms()) throws
        -> [(id: Int64, code: GivenSecret)]
    {
        let codes = (0..<count).map { _ in GivenSecret.newCode() }
        let ids = try database.change { database in
            try codes.map { code in
                let sql = "INSERT INTO codes(digest, expires) VALUES (?,?)"
                try database.run(sql, code.digest, Self.seconds(expires))
                let (id, replaces) = (database.lastInsertedRow, Int64(terms.replaces ? 1 : 0))
                try database.run("INSERT INTO terms VALUES (?,?,?)", id, terms.device, replaces)
                return id
            }
        }
        return Array(zip(ids, codes)).map { (id: $0, code: $1) }
    }

    package func list(at now: Date) throws -> [CodeEntry] {
        let sql = """
            SELECT id, expires, codes.device, terms.device, replaces FROM codes LEFT JOIN terms ON code=id
            ORDER BY id
            """
        return try database.ask { database in
            try database.rows(sql) { row in
                let expires = row.required(1)
                let isOpen = expires > Self.seconds(now)
                return CodeEntry(
                    id: row.required(0),
                    expires: Date(timeIntervalSince1970: TimeInterval(expires)),
                    state: row.isText(2) ? .used(by: row.text(2)) : isOpen ? .open : .expired,
                    terms: CodeTerms(row, from: 3)
                )
            }
        }
    }

    /// Deletes a code; returns false if there is none.
    ///
    /// A code that is not used yet ends. The device that used one keeps its token.
    package func drop(_ id: Int64) throws -> Bool {
        try database.change { database in
            try database.run("DELETE FROM codes WHERE id=?", id)
            return database.changes == 1
        }
    }

    // MARK: Devices

    /// Exchanges a code for a token; a refused exchange does not use up the code.
    ///
    /// Both changes are on the disk when this returns. A revoked device becomes valid again.
    /// `wanted`: the token that the device generated, nil for one made here. With it the device may
    /// repeat the request, because the answer may have been lost. `isListed`: whether the device
    /// has a token in the token list. Throws an `EnrolmentError`; `code` nil: it is not valid.
    package func exchange(
        _ code: GivenSecret?,
        for device: String,
        _ wanted: GivenSecret?,
        isListed: Bool,
        at now: Date
    ) throws -> (token: GivenSecret, isReplaced: Bool, code: Int64) {
        guard let code else { throw EnrolmentError.badCode }
        return try database.change { database in
            if let wanted, let holder = try Self.holder(of: wanted, database) {
                let used = try Self.find(code, usedBy: device, after: 0, database)
                guard let used, holder == device else { throw EnrolmentError.badCode }
                return (wanted, false, used)
            }
            let now = Self.seconds(now)
            guard let id = try Self.find(code, usedBy: nil, after: now, database) else {
                throw EnrolmentError.badCode
            }
            let row = try database.prepare("SELECT device, replaces FROM terms WHERE code=?", id)
            // A code of an earlier version has none and fits any new device.
            let terms = try row.step() ? CodeTerms(row, from: 0) : CodeTerms()
            guard terms.device == nil || terms.device == device else {
                throw EnrolmentError.otherDevice(device)
            }
            let held = try database.prepare("SELECT 1 FROM tokens WHERE device=?", device)
            let isEnrolled = try isListed || held.step()
            guard terms.replaces || !isEnrolled else {
                throw EnrolmentError.alreadyEnrolled(device)
            }
            if isEnrolled {
                try database.run("DELETE FROM tokens WHERE device=?", device)
                let sql = "INSERT OR REPLACE INTO replacements VALUES (?,?)"
                try database.run(sql, device, now)
            }
            let token = wanted ?? GivenSecret.newToken()
            try database.run("UPDATE codes SET device=? WHERE id=?", device, id)
            try database.run("INSERT INTO tokens VALUES (?,?)", token.digest, device)
            try database.run("INSERT OR REPLACE INTO devices VALUES (?,?,NULL)", device, now)
            return (token, isEnrolled, id)
        }
    }

    /// Finds an open code, or one that this device used, comparing with every row in constant time.
    private static func find(
        _ code: GivenSecret,
        usedBy device: String?,
        after expiry: Int64,
        _ database: borrowing Connection
    ) throws -> Int64? {
        let sql = "SELECT id, digest FROM codes WHERE device IS ? AND expires > ?"
        let row = try database.prepare(sql, device, expiry)
        let digest = code.digest
        var found: Int64?
        while try row.step() {
            if GivenSecret.areEqual(row.data(1), digest) { found = row.required(0) }
        }
        return found
    }

    /// Like `device(of:)`, but reads the database instead of the memory.
    private static func holder(of token: GivenSecret, _ database: borrowing Connection) throws
        -> String?
    {
        let row = try database.prepare("SELECT device FROM tokens WHERE digest=?", token.digest)
        return try row.step() ? row.text(0) : nil
    }

    /// Returns the device that has this token; nil if none has.
    package func device(of token: GivenSecret) -> String? {
        database.known.tokens.device(of: token)
    }

    /// Returns whether the device has a token that it got for a code.
    package func isEnrolled(_ device: String) -> Bool { database.known.tokens.has(device) }

    package func isRevoked(_ device: String) -> Bool { database.known.revoked.contains(device) }

    /// Returns whether codes were ever created; then requests need a known token.
    package func isInUse() -> Bool { database.known.hasCodes }

    /// Ends all tokens of a device, for every process; returns false for an unknown device.
    ///
    /// The change is on the disk when this returns. `isKnown`: the device has sent something.
    package func revoke(_ device: String, isKnown: Bool, at now: Date) throws -> Bool {
        try database.change { database in
            let known = try database.prepare(
                "SELECT 1 FROM tokens WHERE device=?1 UNION SELECT 1 FROM devices WHERE device=?1",
                device
            )
            guard try known.step() || isKnown else { return false }
            known.reset()
            try database.run("DELETE FROM tokens WHERE device=?", device)
            try database.run(
                """
                INSERT INTO devices VALUES (?,NULL,?)
                ON CONFLICT(device) DO UPDATE SET revoked=coalesce(revoked, excluded.revoked)
                """,
                device,
                Self.seconds(now)
            )
            return true
        }
    }

    /// Returns the token state of each device, by device id.
    package func devices() throws -> [String: DeviceToken] {
        try database.ask { database in
            var devices: [String: DeviceToken] = [:]
            let held = try database.prepare("SELECT DISTINCT device FROM tokens")
            while try held.step() { devices[held.text(0)] = DeviceToken(isHeld: true) }
            let row = try database.prepare(
                "SELECT device, enrolled, revoked, at FROM devices LEFT JOIN replacements USING (device)"
            )
            while try row.step() {
                let (enrolled, revoked, replaced) = (row.integer(1), row.integer(2), row.integer(3))
                devices.change(row.text(0), from: DeviceToken(isHeld: false)) {
                    ($0.enrolled, $0.revoked, $0.replaced) = (enrolled, revoked, replaced)
                }
            }
            return devices
        }
    }

    private static func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970) }
}

extension CodeTerms {
    /// Reads `device` and `replaces`, which are NULL for a code of an earlier version.
    fileprivate init(_ row: borrowing Statement, from column: Int32) {
        self.init(
            device: row.isText(column) ? row.text(column) : nil,
            replaces: row.required(column + 1) != 0
        )
    }
}
