// Limits on what one device may store.
import Host
import SQLite

/// Checks and counts what each device stores: names, event sources, new files, and bytes per day.
///
/// The tables are in the archive's index and change in the transaction that stores a batch. A
/// broken or hostile device can fill neither the disk nor the pages. Names above a limit are
/// refused for good (422), data above a day's limit until the next day (429).
struct DeviceLimits {
    /// Distinct streams per device.
    static let streams: Int64 = 100
    /// Distinct event sources per device, each with its kind (`RecordLine.stateKinds`).
    static let states: Int64 = 200
    /// New record files per day; enough for a year of ten streams.
    static let files: Int64 = 4000
    /// Bytes counted for each new file in addition to its content, because an inode takes space
    /// too.
    private static let perFile: Int64 = 16 << 10

    static let tables = """
        CREATE TABLE IF NOT EXISTS device_states(device TEXT, state TEXT, PRIMARY KEY (device, state)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS device_days(device TEXT PRIMARY KEY, day INTEGER NOT NULL, bytes INTEGER NOT NULL,
        files INTEGER NOT NULL) WITHOUT ROWID;
        """

    /// The limit per device and day (UTC).
    let bytesPerDay: Int64

    /// Records the names of a batch that is about to be stored; throws an HTTPRefusal before any
    /// change.
    ///
    /// `newFiles`: record files that do not exist yet.
    func admit(
        _ batch: IncomingBatch,
        newFiles: Int64,
        at now: WallTime,
        _ index: borrowing Connection
    ) throws {
        try checkDay(batch.device, newFiles, now, index)
        try checkStream(batch, index)
        try noteStates(batch, index)
    }

    /// Counts a batch that was stored; `sounds`: the number of its audio files.
    func count(
        _ batch: IncomingBatch,
        bytes: Int,
        newFiles: Int64,
        sounds: Int,
        at now: WallTime,
        _ index: borrowing Connection
    ) throws {
        let cost = Int64(bytes) + (newFiles + Int64(sounds)) * Self.perFile
        try index.run(
            """
            INSERT INTO device_days VALUES (?1,?2,?3,?4) ON CONFLICT(device) DO UPDATE SET
            bytes=excluded.bytes + iif(day=excluded.day, bytes, 0),
            files=excluded.files + iif(day=excluded.day, files, 0), day=excluded.day
            """,
            row: [batch.device, Self.day(now), cost, newFiles]
        )
    }

    private static func day(_ now: WallTime) -> Int64 {
        now.milliseconds.floorDivided(by: Day.milliseconds)
    }

    private func checkDay(
        _ device: String,
        _ newFiles: Int64,
        _ now: WallTime,
        _ index: borrowing Connection
    ) throws {
        let sql = "SELECT bytes, files FROM device_days WHERE device=? AND day=?"
        let row = try index.prepare(sql, device, Self.day(now))
        guard try row.step() else { return }
        let (bytes, files) = (row.required(0), row.required(1))
        guard bytes < bytesPerDay else {
            throw Self.tomorrow(
                "\(device) has stored \(bytes) bytes today; --max-per-day is the limit"
            )
        }
        guard newFiles == 0 || files + newFiles <= Self.files else {
            throw Self.tomorrow(
                "\(device) has begun \(files) files today; \(Self.files) are the limit"
            )
        }
    }

    /// The gateway keeps its records, and retries at least once an hour.
    private static func tomorrow(_ reason: String) -> HTTPRefusal {
        HTTPRefusal(status: 429, reason: reason, retryAfter: 3600)
    }

    private func checkStream(_ batch: IncomingBatch, _ index: borrowing Connection) throws {
        let sql = "SELECT 1 FROM streams WHERE device=? AND stream=?"
        let known = try index.prepare(sql, batch.device, batch.stream)
        guard try !known.step() else { return }
        let row = try index.prepare("SELECT count(*) FROM streams WHERE device=?", batch.device)
        guard try row.step(), row.required(0) >= Self.streams else { return }
        let reason =
            "\(batch.device) has \(Self.streams) streams already; \(batch.stream) is too many"
        throw HTTPRefusal(status: 422, reason: reason)
    }

    private func noteStates(_ batch: IncomingBatch, _ index: borrowing Connection) throws {
        guard !batch.states.isEmpty else { return }
        var new: [String] = []
        for state in batch.states {
            let sql = "SELECT 1 FROM device_states WHERE device=? AND state=?"
            if try !index.prepare(sql, batch.device, state).step() { new.append(state) }
        }
        guard !new.isEmpty else { return }
        let row = try index.prepare(
            "SELECT count(*) FROM device_states WHERE device=?",
            batch.device
        )
        guard try row.step(), row.required(0) + Int64(new.count) <= Self.states else {
            let reason = "\(batch.device) has events of more than \(Self.states) sources"
            throw HTTPRefusal(status: 422, reason: reason)
        }
        for state in new {
            try index.run("INSERT INTO device_states VALUES (?,?)", batch.device, state)
        }
    }
}
