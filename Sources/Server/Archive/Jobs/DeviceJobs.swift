// The jobs of all devices, in a database beside the records.
import Foundation
package import Host
import SQLite
import ServerBase
import ServerWeb

/// Jobs until their replies are stored, and where the replies are.
///
/// The commands `job`, `report` and `settings` add jobs in other processes; a running receiver sees
/// them at the next request. A job is closed only after the archive has committed its reply.
/// Thread-safe.
package final class DeviceJobs: Sendable {
    /// A device is offered this many at most.
    private static let maxOpen: Int64 = 64
    /// The bytes of a list; a device ignores a longer one.
    private static let maxList = 64 << 10
    /// The bytes at the end of a record file in which a reply is looked for: a device may send
    /// anything in its stream.
    private static let searched: Int64 = 64 << 20
    /// A report that has not come after this time may be asked for again.
    private static let newReport = Duration.seconds(3600)
    /// The jobs whose replies can be found.
    private static let maxRows: Int64 = 100_000
    /// An expired job that was never answered is deleted after this time.
    private static let longestWait = Duration.seconds(30 * 86_400)

    /// `file`: the record file of the reply; NULL: the job is open.
    private static let tables = """
        CREATE TABLE IF NOT EXISTS jobs(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        device TEXT NOT NULL, kind TEXT NOT NULL, parameters TEXT NOT NULL, added INTEGER NOT NULL,
        expires INTEGER NOT NULL, file TEXT);
        """

    private let directory: String
    /// The open jobs of each device.
    let database: WatchedDatabase<[String: [DeviceJob]]>

    /// Opens the database of a data directory, which the receiver may have open too.
    package init(directory: String) throws {
        self.directory = directory
        let path = "\(directory)/.receiver-jobs.sqlite"
        let tables = Self.tables + Self.settingsTable + Self.rolloutTable
        database = try WatchedDatabase(path, in: directory, tables: tables, read: Self.read)
    }

    @Sendable private static func read(_ database: borrowing Connection) throws
        -> [String: [DeviceJob]]
    {
        let jobs = try open(of: nil, database)
        return Dictionary(grouping: jobs, by: \.device).mapValues { $0.map(\.job) }
    }

    /// Returns the open jobs of a device, nil: of all.
    private static func open(of device: String?, _ database: borrowing Connection) throws -> [(
        device: String, job: DeviceJob
    )] {
        try database.rows(
            """
            SELECT jobs.device, id, kind, parameters, added, expires, version, text, signature
            FROM jobs LEFT JOIN settings ON job=id
            WHERE file IS NULL AND jobs.device=coalesce(?,jobs.device) ORDER BY number
            """,
            device
        ) { row in (device: row.text(0), job: try DeviceJob(row)) }
    }

    /// See `WatchedDatabase`.
    package func refresh(waits: Bool) throws -> Bool { try database.refresh(waits: waits) }

    // MARK: For devices

    private func offered(_ device: String) -> [DeviceJob] {
        let now = SystemClock().wall()
        return (database.known[device] ?? []).filter { $0.isOffered(at: now) }
    }

    /// Returns the tag of a device's jobs, which changes with them; nil if it has none.
    package func tag(of device: String) -> String? {
        let jobs = offered(device)
        return jobs.isEmpty ? nil : Self.tag(jobs)
    }

    private static func tag(_ jobs: [DeviceJob]) -> String {
        base64URL(Array(sha256(jobs.map(\.id).joined(separator: " ")).prefix(12)))
    }

    /// Returns the list that a device fetches.
    package func list(of device: String) -> [String: Any] {
        Self.list(offered(device))
    }

    private static func list(_ jobs: [DeviceJob]) -> [String: Any] {
        ["tag": tag(jobs), "jobs": jobs.map(\.object)]
    }

    /// Closes the jobs of a device whose replies the archive has stored, and stores the states of
    /// its settings.
    package func close(_ replies: [IncomingReply], of device: String) throws {
        let files = Dictionary(replies.map { ($0.job, $0.file) }) { $1 }
        let closed = (database.known[device] ?? []).compactMap { job in
            files[job.id].map { (job.id, $0) }
        }
        let isNews = try database.ask { database in
            try replies.contains { try Self.newState($0, of: device, database) != nil }
        }
        guard !closed.isEmpty || isNews else { return }
        try database.change { database in
            for (id, file) in closed {
                try database.run("UPDATE jobs SET file=? WHERE id=?", file, id)
            }
            for reply in replies { try Self.storeState(reply, of: device, database) }
        }
    }

    // MARK: For people

    /// Adds a job; it is on the disk when this returns.
    ///
    /// Returns its id. Throws a `Failure` if the device has too many open ones.
    package func add(
        _ kind: String,
        _ parameters: [String: String],
        of device: String,
        until expires: WallTime
    ) throws -> String {
        let text = String(decoding: try JSONEncoder().encode(parameters), as: UTF8.self)
        let id = Self.newID()
        try database.change { database in
            try Self.insert(id, kind, text, of: device, until: expires, database)
        }
        return id
    }

    /// Returns the starts of the spans whose sound a device is asked for, as RFC 3339.
    package func soundAsked(of device: String) -> Set<String> {
        let asked = offered(device).filter { $0.kind == "audio" }
        return Set(asked.compactMap { $0.parameters["from"] as? String })
    }

    static func newID() -> String { UUID().uuidString.lowercased() }

    /// Adds a job in a transaction; `parameters`: a JSON object.
    ///
    /// Throws a `Failure` if the device's list has no room for it.
    static func insert(
        _ id: String,
        _ kind: String,
        _ parameters: String,
        of device: String,
        until expires: WallTime,
        _ database: borrowing Connection
    ) throws {
        let now = SystemClock().wall()
        let oldest = now.milliseconds - longestWait.milliseconds
        try database.run("DELETE FROM jobs WHERE file IS NULL AND expires<?", oldest)
        let sql = "SELECT count(*) FROM jobs WHERE device=? AND file IS NULL"
        guard try database.integer(sql, device) ?? 0 < maxOpen else {
            throw Failure("\(device) has \(maxOpen) open jobs; wait until it has answered some")
        }
        try database.run(
            "INSERT INTO jobs(id, device, kind, parameters, added, expires) VALUES (?,?,?,?,?,?)",
            row: [id, device, kind, parameters, now.milliseconds, expires.milliseconds]
        )
        let last = database.lastInsertedRow - maxRows
        try database.run("DELETE FROM jobs WHERE file IS NOT NULL AND number<?", last)
        let offered = try open(of: device, database).map(\.job).filter { $0.isOffered(at: now) }
        guard HTTPAnswer(200, list(offered)).body.count <= maxList else {
            throw Failure(
                "the open jobs of \(device) would have more than \(maxList) bytes as JSON; "
                    + "shorten the settings, or wait until it has answered some"
            )
        }
    }

    /// Returns the id of an open report that was asked for in the last hour; nil if there is none.
    package func openReport(of device: String) -> String? {
        let now = SystemClock().wall()
        let reports = (database.known[device] ?? []).filter { job in
            job.kind == "report" && now < job.expires
        }
        return reports.last { now < $0.added + Self.newReport }?.id
    }

    /// Adds a report, unless one was asked for in the last hour; returns its id.
    package func askForReport(of device: String, until expires: WallTime) throws -> String {
        try openReport(of: device) ?? add("report", [:], of: device, until: expires)
    }

    /// Returns the record of the reply to a job, `id` nil: to the newest answered report; nil if
    /// there is none yet.
    ///
    /// Throws a `Failure` if its file does not have it any more.
    package func record(of id: String?, of device: String) throws -> String? {
        guard let reply = try reply(to: id, of: device) else { return nil }
        let file = try LineFile.open("\(directory)/\(reply.file)")
        var found: String?
        if let file {
            let size = try file.size()
            try file.forEachLine(from: max(0, size - Self.searched), to: size) { line in
                if let line, line.text("job") == reply.job { found = line.raw(line.extent) }
            }
        }
        guard let found else { throw Failure("\(reply.file) does not have the report any more") }
        return found
    }

    private func reply(to id: String?, of device: String) throws -> (job: String, file: String)? {
        let wanted = id == nil ? "kind=?" : "id=?"
        return try database.ask { database in
            let row = try database.prepare(
                "SELECT id, file FROM jobs WHERE device=? AND file IS NOT NULL AND \(wanted) "
                    + "ORDER BY number DESC LIMIT 1",
                device,
                id ?? "report"
            )
            return try row.step() ? (row.text(0), row.text(1)) : nil
        }
    }
}

extension DeviceJob {
    fileprivate init(_ row: borrowing Statement) throws {
        (id, kind) = (row.text(1), row.text(2))
        parameters = try Self.parameters(row)
        added = WallTime(milliseconds: row.required(4))
        expires = WallTime(milliseconds: row.required(5))
    }

    private static func parameters(_ row: borrowing Statement) throws -> [String: any Sendable] {
        guard let version = row.integer(6) else {
            return try JSONDecoder().decode([String: String].self, from: Data(row.text(3).utf8))
        }
        var settings: [String: any Sendable] = [
            "version": version, "for": row.text(0), "text": row.text(7),
        ]
        if !row.isNull(8) { settings["signature"] = row.text(8) }
        return settings
    }
}
