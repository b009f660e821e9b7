// Rollouts of settings: stored beside the jobs, so that a step and its versions are one transaction.
package import Host
import JSON
import SQLite
import ServerBase

extension DeviceJobs {
    /// `state`: a `Rollout` as JSON; `is_open`: 1 if a server has something to do for it.
    static let rolloutTable = """
        CREATE TABLE IF NOT EXISTS rollouts("group" TEXT PRIMARY KEY, text TEXT NOT NULL,
        is_open INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
        """

    // MARK: For people

    /// Starts a rollout, which replaces the last one to the group; a running server goes on with it.
    ///
    /// `text`: as for `setSettings`; `stages`: as for `Rollout.stages`. Throws a `Failure` if the
    /// stages are wrong, the group has no devices, or another rollout to it is in its stages.
    package func startRollout(
        _ text: String,
        to group: String,
        of devices: [String],
        in stages: String,
        at now: WallTime
    ) throws -> Rollout {
        guard !devices.isEmpty else {
            throw Failure("group \(printable(group)) has no devices; see `label device --help`")
        }
        let counts = try Rollout.stages(stages, of: devices.count)
        return try database.change { database in
            if let old = try Self.rollout(to: group, database)?.rollout, old.isInStages {
                throw Failure("a rollout to \(printable(group)) is running; stop it first")
            }
            let newest = try Self.answers(database).mapValues(\.version)
            let at = now.milliseconds
            let rollout = Rollout(group, devices, counts, newest: newest, at: at)
            try database.run("INSERT OR REPLACE INTO rollouts VALUES (?,?,1,'')", group, text)
            try Self.store(rollout, database)
            return rollout
        }
    }

    /// Returns the last rollout of each group, by the groups' names.
    package func rollouts() throws -> [Rollout] {
        try database.ask { database in
            try database.rows("SELECT state FROM rollouts ORDER BY \"group\"") {
                try Self.decoded($0.text(0))
            }
        }
    }

    /// Stops or resumes the rollout to a group; returns it, nil if there is none.
    package func changeRollout(
        to group: String,
        _ body: @Sendable (inout Rollout) -> [Rollout.Action]
    ) throws -> Rollout? {
        try database.change { database in
            guard let old = try Self.rollout(to: group, database) else { return nil }
            var rollout = old.rollout
            let actions = body(&rollout)
            try Self.perform(actions, of: &rollout, old.text, at: SystemClock().wall(), database)
            try Self.store(rollout, database)
            return rollout
        }
    }

    // MARK: For the server

    /// Whether `stepRollouts` has something to do.
    package func hasOpenRollouts() throws -> Bool {
        let sql = "SELECT count(*) FROM rollouts WHERE is_open=1"
        return try database.ask { try $0.integer(sql) ?? 0 } > 0
    }

    /// Takes the next step of each rollout; it is on the disk when this returns.
    ///
    /// Returns the halted ones whose alert was not stored yet; see `reportedHalt`.
    package func stepRollouts(_ contacts: [String: RolloutDevice.Contact], at now: WallTime) throws
        -> [Rollout]
    {
        try database.change { database in
            let open = try database.rows(
                "SELECT state, text FROM rollouts WHERE is_open=1 ORDER BY \"group\""
            ) { (rollout: try Self.decoded($0.text(0)), text: $0.text(1)) }
            return try open.compactMap { old in
                var rollout = old.rollout
                var seen = Rollout.Observation()
                // Read for each: the rollout before may have changed a device that is in both.
                (seen.contacts, seen.answers) = (contacts, try Self.answers(database))
                let actions = rollout.step(seen, at: now.milliseconds)
                try Self.perform(actions, of: &rollout, old.text, at: now, database)
                if rollout != old.rollout { try Self.store(rollout, database) }
                return rollout.status == .halted ? rollout : nil
            }
        }
    }

    /// Stores that the alert about a halt is stored.
    package func reportedHalt(of halted: Rollout) throws {
        try database.change { database in
            // Somebody may have resumed or replaced it.
            guard var rollout = try Self.rollout(to: halted.group, database)?.rollout,
                rollout == halted
            else { return }
            rollout.isReported = true
            try Self.store(rollout, database)
        }
    }

    // MARK: In a transaction

    private static func rollout(to group: String, _ database: borrowing Connection) throws -> (
        rollout: Rollout, text: String
    )? {
        try database.rows("SELECT state, text FROM rollouts WHERE \"group\"=?", group) {
            (try decoded($0.text(0)), $0.text(1))
        }.first
    }

    @Sendable private static func decoded(_ json: String) throws -> Rollout {
        try JSONInput.decode(from: Array(json.utf8), snakeCase: true)
    }

    private static func store(_ rollout: Rollout, _ database: borrowing Connection) throws {
        try database.run(
            "UPDATE rollouts SET is_open=?, state=? WHERE \"group\"=?",
            Int64(rollout.isOpen ? 1 : 0),
            String(decoding: encodedJSON(rollout), as: UTF8.self),
            rollout.group
        )
    }

    private static func answers(_ database: borrowing Connection) throws
        -> [String: RolloutDevice.Answer]
    {
        let newest = try database.rows(
            """
            SELECT device, version, state, message, at FROM settings s
            WHERE version=(SELECT max(version) FROM settings WHERE device=s.device)
            """
        ) { row in
            let state = DeviceSettings.State(rawValue: row.text(2)) ?? .failed
            let (version, at) = (row.required(1), row.required(4))
            let message = row.text(3)
            return (
                row.text(0),
                RolloutDevice.Answer(version: version, state: state, message: message, at: at)
            )
        }
        return Dictionary(newest) { $1 }
    }

    private static func perform(
        _ actions: [Rollout.Action],
        of rollout: inout Rollout,
        _ text: String,
        at now: WallTime,
        _ database: borrowing Connection
    ) throws {
        for action in actions {
            switch action {
            case .give(let device, let version):
                do {
                    try give(version, text, to: device, until: now + settingsWait, database)
                } catch let error as Failure {
                    rollout.leaveOut(device, because: error.description)
                }
            case .withdraw(let device, let version):
                try withdraw(version, of: device, at: now, database)
            }
        }
    }

    /// Adds a version; adds nothing if it throws.
    private static func give(
        _ version: Int64,
        _ text: String,
        to device: String,
        until expires: WallTime,
        _ database: borrowing Connection
    ) throws {
        try database.execute("SAVEPOINT give")
        do {
            try insertVersion(version, of: device, text, until: expires, database)
        } catch {
            if !database.isAutocommit { try database.execute("ROLLBACK TO give; RELEASE give") }
            throw error
        }
        try database.execute("RELEASE give")
    }

    /// Withdraws a version that is not answered.
    ///
    /// Its state stays, because the device may have fetched it, and replies later.
    private static func withdraw(
        _ version: Int64,
        of device: String,
        at now: WallTime,
        _ database: borrowing Connection
    ) throws {
        try database.run(
            """
            DELETE FROM jobs WHERE file IS NULL
            AND id=(SELECT job FROM settings WHERE device=? AND version=?)
            """,
            device,
            version
        )
        try database.run(
            """
            UPDATE settings SET message='withdrawn by the rollout', at=?
            WHERE device=? AND version=? AND state='waiting'
            """,
            now.milliseconds,
            device,
            version
        )
    }
}
