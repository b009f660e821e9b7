// The records in a device's live database, read without the gateway's code.
internal import Records
internal import SQLite

/// The records of a device by state, as far as the order of deletion depends on it.
struct Holdings {
    /// Ids of records that are in no batch, ascending, by stream number.
    var pending: [Int: [Int64]] = [:]
    /// Chunks that nobody has marked.
    var held: Set<Int64> = []
    /// Bytes of those records.
    var pendingBytes: [Int: Int64] = [:]
    /// Remaining records of each uploaded batch, by its stream and last record: its first ones may
    /// be deleted.
    var uploaded: [String: Int64] = [:]
    /// Quarantined records by stream number.
    var quarantined: [Int: Int64] = [:]
    /// Evicted records by stream number, according to the loss ledger.
    var evicted: [Int: Int64] = [:]
    /// Bytes of the database's file, and of its free pages.
    var fileBytes: Int64 = 0
    var reusableBytes: Int64 = 0

    init(_ live: OpenDatabase, _ streams: [StreamKind]) throws {
        let rows = try live.connection.prepare("SELECT first, last FROM held")
        while try rows.step() { held.formUnion(rows.required(0)...rows.required(1)) }
        for kind in streams { try readPending(kind, live.connection) }
        sort(try Self.batches(live.connection))
        try readLedger(live.connection)
        let page = try live.connection.integer("PRAGMA page_size") ?? 0
        fileBytes = page * (try live.connection.integer("PRAGMA page_count") ?? 0)
        reusableBytes = page * (try live.connection.integer("PRAGMA freelist_count") ?? 0)
    }

    /// A separate function: a default of a dictionary crashes Swift 6.0.3 in a function that
    /// borrows a connection.
    private mutating func sort(_ batches: [Batch]) {
        for batch in batches {
            if batch.state == 1 {
                uploaded["\(batch.stream) \(batch.last)"] = batch.records
            } else {
                quarantined[Int(batch.stream), default: 0] += batch.records
            }
        }
    }

    private typealias Batch = (stream: Int64, last: Int64, records: Int64, state: Int64)

    private static func batches(_ live: borrowing Connection) throws -> [Batch] {
        let rows = try live.prepare(
            "SELECT stream, last, last-first+1, state FROM batches WHERE state>0 AND database=0"
        )
        var batches: [Batch] = []
        while try rows.step() {
            batches.append(
                (rows.required(0), rows.required(1), rows.required(2), rows.required(3))
            )
        }
        return batches
    }

    private mutating func readLedger(_ live: borrowing Connection) throws {
        let rows = try live.prepare("SELECT stream, records FROM losses WHERE kind='evicted'")
        while try rows.step() { evicted[Int(rows.required(0))] = rows.required(1) }
    }

    private mutating func readPending(
        _ kind: StreamKind,
        _ live: borrowing Connection
    ) throws {
        let rows = try live.prepare(
            """
            SELECT id, ifnull(\(Self.size(kind)), 0) FROM \(kind.table) r WHERE NOT EXISTS (SELECT 1 FROM batches
            WHERE database=0 AND stream=? AND r.id BETWEEN first AND last) ORDER BY id
            """
        )
        try rows.bind(Int64(kind.stream.number), at: 1)
        var (ids, sum): ([Int64], Int64) = ([], 0)
        while try rows.step() {
            if kind.stream == .audio, held.contains(rows.required(0)) { continue }
            ids.append(rows.required(0))
            sum += rows.required(1) + 60
        }
        (pending[kind.stream.number], pendingBytes[kind.stream.number]) = (ids, sum)
    }

    /// Returns SQL for the bytes in a record's row.
    private static func size(_ kind: StreamKind) -> String {
        if case .sound = kind.shape { return "bytes" }
        return "length(CAST(\(Presence.column(kind.stream)) AS BLOB))"
    }
}
