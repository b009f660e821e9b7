// What a device's live database holds, read without the gateway's code.
internal import SQLite
internal import Streams

/// The records of a device by what has become of them, as far as the order of deletion depends on it.
struct Holdings {
    /// Ids of records that are in no batch, ascending, by the number of the stream.
    var pending: [Int: [Int64]] = [:]
    /// Bytes of those records.
    var pendingBytes: [Int: Int64] = [:]
    /// How many records of each uploaded batch are still here, by the batch's key.
    var uploaded: [String: Int64] = [:]
    /// How many records are in quarantine, by the number of the stream.
    var quarantined: [Int: Int64] = [:]
    /// How many records the ledger says were evicted, by the number of the stream.
    var evicted: [Int: Int64] = [:]

    init(_ live: borrowing Connection, _ streams: [StreamKind]) throws {
        for kind in streams { try readPending(kind, live) }
        let batches = try live.prepare(
            "SELECT uuid, stream, last-first+1, state FROM batches WHERE state>0 AND database=0"
        )
        while try batches.step() {
            let (key, stream, records) = (
                batches.text(0), Int(batches.required(1)), batches.required(2)
            )
            if batches.required(3) == 1 {
                uploaded[key] = records
            } else {
                quarantined[stream, default: 0] += records
            }
        }
        let ledger = try live.prepare("SELECT stream, records FROM losses WHERE kind='evicted'")
        while try ledger.step() {
            let (stream, records) = (Int(ledger.required(0)), ledger.required(1))
            evicted[stream] = records
        }
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
        // Not into the dictionaries at once: Swift 6.0.3 crashes over a statement that is used within their access.
        var (ids, sum): ([Int64], Int64) = ([], 0)
        while try rows.step() {
            ids.append(rows.required(0))
            sum += rows.required(1) + 60
        }
        (pending[kind.stream.number], pendingBytes[kind.stream.number]) = (ids, sum)
    }

    /// SQL for the bytes that a record's row holds.
    private static func size(_ kind: StreamKind) -> String {
        if case .sound = kind.shape { return "bytes" }
        return "length(CAST(\(Presence.column(kind.stream)) AS BLOB))"
    }
}
