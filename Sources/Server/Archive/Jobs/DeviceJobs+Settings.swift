// The settings of devices: each version is a job, and its state outlives the job.
package import Host
import SQLite
import ServerBase

extension DeviceJobs {
    /// The bytes of a text.
    package static let maxSettings = 32_000
    /// The bytes of a signature, a file of minisign.
    package static let maxSignature = 2000
    /// How long a device is offered a version, if nobody says otherwise.
    package static let settingsWait = Duration.seconds(30 * 86_400)
    /// The highest version.
    private static let maxVersion: Int64 = 999_999_999
    /// The versions that are stored for each device, besides the one in force.
    private static let maxVersions: Int64 = 20

    /// `at`: when the state was stored, in milliseconds since 1970.
    static let settingsTable = """
        CREATE TABLE IF NOT EXISTS settings(device TEXT NOT NULL, version INTEGER NOT NULL,
        text TEXT NOT NULL, signature TEXT, job TEXT NOT NULL UNIQUE, state TEXT NOT NULL,
        message TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(device, version));
        """

    // MARK: For people

    /// Adds the next version of a device's settings; it is on the disk when this returns.
    ///
    /// An older version that the device has not answered is withdrawn. `text`: TOML, empty for the
    /// device's own file alone; `version`: nil for the one after the highest. Returns the version.
    /// Throws a `Failure` if the version is not a new one or the device's list has no room for it.
    package func setSettings(
        of device: String,
        _ text: String,
        signature: String? = nil,
        version: Int64? = nil,
        until expires: WallTime
    ) throws -> Int64 {
        try database.change { database in
            let next = try Self.nextVersion(version, of: device, database)
            try Self.insertVersion(next, of: device, text, signature, until: expires, database)
            return next
        }
    }

    /// Adds a version in a transaction; throws a `Failure` if the device's list has no room for it.
    static func insertVersion(
        _ version: Int64,
        of device: String,
        _ text: String,
        _ signature: String? = nil,
        until expires: WallTime,
        _ database: borrowing Connection
    ) throws {
        let (id, now) = (newID(), SystemClock().wall().milliseconds)
        try database.run(
            "DELETE FROM jobs WHERE device=? AND kind='settings' AND file IS NULL",
            device
        )
        try database.run(
            "INSERT INTO settings VALUES (?,?,?,?,?,'waiting','',?)",
            row: [device, version, text, signature, id, now]
        )
        try insert(id, "settings", "{}", of: device, until: expires, database)
        try deleteOldVersions(of: device, database)
    }

    private static func nextVersion(
        _ given: Int64?,
        of device: String,
        _ database: borrowing Connection
    ) throws -> Int64 {
        let highest = "SELECT max(version) FROM settings WHERE device=?"
        let last = try database.integer(highest, device) ?? 0
        let next = given ?? last + 1
        guard next > last, next <= maxVersion else {
            throw Failure("version \(next) of \(device) is not from \(last + 1) to \(maxVersion)")
        }
        return next
    }

    private static func deleteOldVersions(
        of device: String,
        _ database: borrowing Connection
    ) throws {
        try database.run(
            """
            DELETE FROM settings WHERE device=?1 AND version NOT IN
            (SELECT version FROM settings WHERE device=?1 ORDER BY version DESC LIMIT ?2)
            AND version<>coalesce((SELECT max(version) FROM settings
            WHERE device=?1 AND state IN ('trial','kept')),0)
            """,
            device,
            maxVersions
        )
    }

    /// Returns the newest version of a device's settings, `device` nil: of each device that was ever
    /// given settings, by the devices' ids.
    package func settings(of device: String? = nil) throws -> [DeviceSettings] {
        let now = SystemClock().wall()
        return try database.ask { database in
            try database.rows(
                """
                SELECT s.device, version, text, state, message, at, expires,
                (SELECT max(version) FROM settings
                WHERE device=s.device AND state IN ('trial','kept'))
                FROM settings s LEFT JOIN jobs ON id=job
                WHERE version=(SELECT max(version) FROM settings WHERE device=s.device)
                AND s.device=coalesce(?,s.device) ORDER BY s.device
                """,
                device
            ) { DeviceSettings($0, at: now) }
        }
    }

    // MARK: For devices

    /// Returns the version and the new state that a reply reports; nil for a reply that changes
    /// nothing: it is not about settings of this device, came before, or names another version.
    static func newState(
        _ reply: IncomingReply,
        of device: String,
        _ database: borrowing Connection
    ) throws -> (version: Int64, state: DeviceSettings.State)? {
        guard reply.isOfSettings else { return nil }
        let row = try database.prepare(
            "SELECT version, state FROM settings WHERE job=? AND device=?",
            reply.job,
            device
        )
        guard try row.step(), let old = DeviceSettings.State(rawValue: row.text(1)) else {
            return nil
        }
        // An unknown state, such as one of a newer gateway, counts as a failure.
        let new = DeviceSettings.State(rawValue: reply.state) ?? .failed
        // A device that did not accept the job may not know its version.
        let isRefusal = [.refused, .expired, .failed].contains(new)
        guard reply.version == row.integer(0) || reply.version == nil && isRefusal,
            old.step < new.step
        else { return nil }
        return (row.required(0), new)
    }

    /// Stores the state that a reply reports, in a transaction.
    static func storeState(
        _ reply: IncomingReply,
        of device: String,
        _ database: borrowing Connection
    ) throws {
        guard let (version, state) = try newState(reply, of: device, database) else { return }
        let now = SystemClock().wall().milliseconds
        try database.run(
            "UPDATE settings SET state=?, message=?, at=? WHERE device=? AND version=?",
            row: [state.rawValue, reply.message, now, device, version]
        )
        guard state == .trial || state == .kept else { return }
        // A version on trial ends the trial before it; a kept one replaces all.
        try database.run(
            """
            UPDATE settings SET state='replaced'
            WHERE device=? AND version<? AND state IN ('trial',?)
            """,
            device,
            version,
            state.rawValue
        )
    }
}

extension DeviceSettings {
    /// Reads a row; without its job, which is deleted later, an unanswered version has expired.
    fileprivate init(_ row: borrowing Statement, at now: WallTime) {
        let stored = State(rawValue: row.text(3)) ?? .failed
        let at = WallTime(milliseconds: row.required(5))
        let expires = row.integer(6).map { WallTime(milliseconds: $0) } ?? at
        let isExpired = stored == .waiting && expires <= now
        (device, version, text) = (row.text(0), row.required(1), row.text(2))
        (state, message, inForce) = (isExpired ? .expired : stored, row.text(4), row.integer(7))
        self.at = isExpired ? expires : at
    }
}
