// Limits on what one device may store.
import Host
import SQLite
import ServerBase

/// Checks and counts what each device stores: names, event sources, new files, and bytes per day.
///
/// The tables are in the archive's index and change in the transaction that stores a batch. A
/// broken or hostile device can fill neither the disk nor the pages. Names above a limit are
/// refused for good (422), data above a day's limit until the next day (429). A stream reaches its
/// own limits first, so that one with wrong dates or too much data does not stop the others.
struct DeviceLimits {
    /// Distinct streams per device.
    static let streams: Int64 = 100
    /// Distinct event sources per stream, each with its kind (`RecordLine.stateKinds`).
    static let states: Int64 = 200
    /// New record files per day and stream.
    static let files: Int64 = 1000
    /// New record files per day.
    static let allFiles: Int64 = 20_000
    /// Bytes counted for each new file in addition to its content, because an inode takes space
    /// too.
    private static let perFile: Int64 = 16 << 10

    static let tables = """
        CREATE TABLE IF NOT EXISTS device_states(device TEXT, state TEXT, PRIMARY KEY (device, state)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS stream_days(device TEXT, stream TEXT, day INTEGER NOT NULL, bytes INTEGER NOT NULL,
        files INTEGER NOT NULL, PRIMARY KEY (device, stream)) WITHOUT ROWID;
        """

    /// The limit per device and day (UTC).
    let bytesPerDay: Int64

    /// Records the names of a batch that is about to be stored; throws an HTTPError before any
    /// change.
    ///
    /// `newFiles`: record files that do not exist yet.
    func admit(
        _ batch: IncomingBatch,
        newFiles: Int64,
        at now: WallTime,
        _ index: borrowing Connection
    ) throws {
        try checkDay(batch, newFiles, now, index)
        try checkStream(batch, index)
        try recordStates(batch, index)
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
            INSERT INTO stream_days VALUES (?1,?2,?3,?4,?5) ON CONFLICT DO UPDATE SET
            bytes=excluded.bytes + iif(day=excluded.day, bytes, 0),
            files=excluded.files + iif(day=excluded.day, files, 0), day=excluded.day
            """,
            row: [batch.device, batch.stream, Self.day(now), cost, newFiles]
        )
    }

    private static func day(_ now: WallTime) -> Int64 {
        now.milliseconds.floorDivided(by: Day.milliseconds)
    }

    private func checkDay(
        _ batch: IncomingBatch,
        _ newFiles: Int64,
        _ now: WallTime,
        _ index: borrowing Connection
    ) throws {
        let sql = """
            SELECT total(bytes), total(files), total(iif(stream=?3, bytes, 0)), total(iif(stream=?3, files, 0))
            FROM stream_days WHERE device=?1 AND day=?2
            """
        let row = try index.prepare(sql, batch.device, Self.day(now), batch.stream)
        guard try row.step() else { return }
        let device = (bytes: row.required(0), files: row.required(1))
        let stream = (bytes: row.required(2), files: row.required(3))
        func refuse(_ what: String, of one: String?) throws -> Never {
            let name = one.map { "stream \($0) of \(batch.device)" } ?? batch.device
            throw HTTPError(
                status: 429,
                reason: "\(name) has \(what)",
                retryAfter: 3600,
                stream: one
            )
        }
        if device.bytes >= bytesPerDay {
            try refuse("stored \(device.bytes) bytes today; --max-per-day is the limit", of: nil)
        }
        // The last eighth is for the device's other streams.
        if stream.bytes >= bytesPerDay - bytesPerDay / 8 {
            let what = "stored \(stream.bytes) bytes today; 7/8 of --max-per-day are the limit"
            try refuse(what, of: batch.stream)
        }
        guard newFiles > 0 else { return }
        for (files, maximum, one) in [
            (device.files, Self.allFiles, nil), (stream.files, Self.files, batch.stream),
        ] where files > maximum - newFiles {
            try refuse("begun \(files) files today; \(maximum) are the limit", of: one)
        }
    }

    private func checkStream(_ batch: IncomingBatch, _ index: borrowing Connection) throws {
        let sql = "SELECT 1 FROM streams WHERE device=? AND stream=?"
        let known = try index.prepare(sql, batch.device, batch.stream)
        guard try !known.step() else { return }
        let row = try index.prepare("SELECT count(*) FROM streams WHERE device=?", batch.device)
        guard try row.step(), row.required(0) >= Self.streams else { return }
        let reason =
            "\(batch.device) has \(Self.streams) streams already; \(batch.stream) is too many"
        throw HTTPError(status: 422, reason: reason)
    }

    private func recordStates(_ batch: IncomingBatch, _ index: borrowing Connection) throws {
        guard !batch.states.isEmpty else { return }
        var new: [String] = []
        for state in batch.states.map({ "\(batch.stream) \($0)" }) {
            let sql = "SELECT 1 FROM device_states WHERE device=? AND state=?"
            if try !index.prepare(sql, batch.device, state).step() { new.append(state) }
        }
        guard !new.isEmpty else { return }
        let row = try index.prepare(
            "SELECT count(*) FROM device_states WHERE device=? AND state GLOB ?",
            batch.device,
            "\(batch.stream) *"
        )
        guard try row.step(), row.required(0) + Int64(new.count) <= Self.states else {
            let reason = "\(batch.device) has events of more than \(Self.states) sources"
            throw HTTPError(status: 422, reason: reason)
        }
        for state in new {
            try index.run("INSERT INTO device_states VALUES (?,?)", batch.device, state)
        }
    }
}
