// Random transactions on a disk that loses power at a random moment, judged by a model.
import SimulatedDisk

/// Several lives of one database, each ended by a power cut.
///
/// The content that the database may have depends only on its last transaction; the model keeps it
/// for each.
final class History {
    /// Rows by the transaction that they are of.
    private typealias State = [Int64: Int64]

    let disk: SimulatedDisk
    /// Whether writes, syncs and reads fail now and then, and room ends.
    var hasFaults = false
    private(set) var log: [String] = []
    private(set) var commits = 0
    private(set) var failures = 0
    private var chance: Chance
    /// More than one where a COMMIT failed: a power cut may still bring it back.
    private var states: [Int64: [State]] = [0: [[:]]]
    /// The last whose COMMIT returned.
    private var committed: Int64 = 0
    /// Connections of processes that have died, which close late.
    private var dead: [Database] = []

    init(seed: UInt64) {
        chance = Chance(state: seed)
        disk = SimulatedDisk(seed: seed)
        disk.trace = { [weak self] in self?.log.append($0) }
    }

    /// Returns what is wrong, or nil.
    func run(lives: Int) -> String? {
        for life in 0..<lives {
            live()
            disk.crash(using: &chance)
            disk.capacity = nil
            if let wrong = evaluate() { return "life \(life): \(wrong)" }
            disk.kill()
            if Bool.random(using: &chance) { dead.removeAll() }
        }
        return nil
    }

    // MARK: A life

    private func live() {
        disk.powerOff(after: .random(in: 1...300, using: &chance))
        guard let writer = try? Database.writer(disk) else { return }
        dead.append(writer)
        let pages = Int.random(in: 4...60, using: &chance)
        guard (try? writer.row("PRAGMA wal_autocheckpoint=\(pages)")) != nil,
            (try? writer.execute(Self.schema)) != nil
        else { return }
        while !disk.isOff {
            if hasFaults { drawFault() }
            do {
                try transaction(writer)
            } catch {
                failures += 1
                disk.capacity = nil
                // SQLite has ended it by itself, as a rule.
                try? writer.execute("ROLLBACK")
            }
        }
        disk.clearFaults()
    }

    private func drawFault() {
        disk.clearFaults()
        let after = Int.random(in: 0...20, using: &chance)
        switch Int.random(in: 0..<12, using: &chance) {
        case 0: disk.fail(.writes, after: after, times: 1)
        case 1: disk.fail(.syncs, after: after / 10, times: .random(in: 1...2, using: &chance))
        case 2: disk.fail(.reads, after: after, times: 1)
        case 3: disk.capacity = disk.usedBytes + Int64(after * 512)
        default: break
        }
    }

    private static let schema = """
        BEGIN IMMEDIATE;
        CREATE TABLE IF NOT EXISTS ledger(number INTEGER PRIMARY KEY, count INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS records(id INTEGER PRIMARY KEY, number INTEGER, data BLOB);
        PRAGMA user_version=1;
        COMMIT;
        """

    private func transaction(_ writer: Database) throws {
        let number = committed + 1
        var state = states[committed]?.first ?? [:]
        try writer.execute("BEGIN IMMEDIATE")
        if Int.random(in: 0..<4, using: &chance) == 0, let oldest = state.keys.min() {
            state[oldest] = nil
            try writer.execute("DELETE FROM records WHERE number=\(oldest)")
            try writer.execute("DELETE FROM ledger WHERE number=\(oldest)")
            try writer.execute("PRAGMA incremental_vacuum(5)")
        }
        let rows = Int64.random(in: 1...12, using: &chance)
        for _ in 0..<rows {
            let bytes = Int.random(in: 0...900, using: &chance)
            try writer.execute("INSERT INTO records VALUES (NULL, \(number), zeroblob(\(bytes)))")
        }
        state[number] = rows
        try writer.execute("INSERT INTO ledger VALUES (\(number), \(rows))")
        // From here on it may be on the disk, whether COMMIT returns or not.
        states[number, default: []].append(state)
        try writer.execute("COMMIT")
        states[number] = [state]
        committed = number
        commits += 1
        if Int.random(in: 0..<20, using: &chance) == 0 {
            _ = try writer.row("PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    // MARK: The judge

    private func evaluate() -> String? {
        do {
            let database = try Database.writer(disk)
            let check = try database.row("PRAGMA integrity_check")
            guard check == ["ok"] else { return "\(check)" }
            guard try database.integer("PRAGMA user_version") == 1 else {
                return committed == 0 ? nil : "no schema"
            }
            let last = try database.integer("SELECT max(number) FROM ledger") ?? 0
            guard last == committed || last == committed + 1 else {
                return "\(committed) was committed, \(last) is the last"
            }
            let ledger = try state(database, "SELECT number, count FROM ledger")
            let records = try state(
                database,
                "SELECT number, count(*) FROM records GROUP BY number"
            )
            guard ledger == records else { return "half a transaction" }
            guard states[last]?.contains(ledger) == true else { return "not what \(last) left" }
            committed = last
            states[last] = [ledger]
            states[last + 1] = nil
            if Bool.random(using: &chance) { dead.append(database) }
            return nil
        } catch {
            return "\(error)"
        }
    }

    private func state(_ database: Database, _ sql: String) throws -> State {
        let pairs = try database.rows(sql).map { row in (Int64(row[0]) ?? 0, Int64(row[1]) ?? 0) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }
}
