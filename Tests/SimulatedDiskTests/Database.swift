// SQLite on a simulated disk, set up as the queue does it.
import CSQLite
import SimulatedDisk

/// SQLite's error.
struct SQLFailure: Error, Equatable {
    var code: Int32

    var primaryCode: Int32 { code & 0xFF }
}

/// One connection.
final class Database {
    static let path = "/data/queue.db"

    private let handle: OpaquePointer

    init(_ disk: SimulatedDisk, _ path: String = Database.path, readOnly: Bool = false) throws {
        var handle: OpaquePointer?
        let mode = readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let code = sqlite3_open_v2(path, &handle, mode | SQLITE_OPEN_NOMUTEX, disk.vfs)
        guard code == SQLITE_OK, let handle else {
            sqlite3_close_v2(handle)
            throw SQLFailure(code: code)
        }
        self.handle = handle
        sqlite3_extended_result_codes(handle, 1)
    }

    /// The writer's connection.
    static func writer(_ disk: SimulatedDisk, _ path: String = Database.path) throws -> Database {
        let database = try Database(disk, path)
        if try database.integer("PRAGMA user_version") == 0 {
            try database.execute("PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL")
        }
        try database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
        try database.execute("PRAGMA secure_delete=FAST; PRAGMA cache_size=-512")
        return database
    }

    deinit {
        sqlite3_close_v2(handle)
    }

    func execute(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure }
    }

    /// The columns of the first row, as text.
    func row(_ sql: String) throws -> [String] {
        try rows(sql).first ?? []
    }

    func rows(_ sql: String) throws -> [[String]] {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
            throw failure
        }
        defer { sqlite3_finalize(statement) }
        var rows: [[String]] = []
        while true {
            let code = sqlite3_step(statement)
            if code == SQLITE_DONE { return rows }
            guard code == SQLITE_ROW else { throw failure }
            rows.append(
                (0..<sqlite3_column_count(statement)).map { column in
                    sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
                }
            )
        }
    }

    func integer(_ sql: String) throws -> Int64? {
        try row(sql).first.flatMap { Int64($0) }
    }

    /// The code that a statement fails with; SQLITE_OK where it does not.
    func code(_ sql: String) -> Int32 {
        do {
            try execute(sql)
            return SQLITE_OK
        } catch let failure as SQLFailure {
            return failure.code
        } catch {
            return SQLITE_ERROR
        }
    }

    private var failure: SQLFailure { SQLFailure(code: sqlite3_extended_errcode(handle)) }
}

/// The same numbers for the same seed.
struct Chance: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        let mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ (mixed >> 27) ^ (mixed >> 31)
    }
}
