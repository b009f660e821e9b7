// The batches that a device may send again, with the answers that they got.
import SQLite

/// The idempotency keys of the last batches of each stream, in the archive's index.
///
/// A gateway repeats a batch only until it is answered, so older keys do not come again. If one
/// does, its records are still known by their ids; only the counts in the answer differ.
enum RecentBatches {
    private static let maximum = 4

    /// Returns the answer to the batch with this key; nil if it is unknown.
    static func receipt(of one: WaitingBatch, _ index: borrowing Connection) throws
        -> Receipt?
    {
        let entry = try entries(of: one.batch, index).first { $0.hasPrefix("\(one.key):") }
        let counts = entry?.split(separator: ":").dropFirst().compactMap { Int($0) } ?? []
        return counts.count == 2 ? Receipt(accepted: counts[0], duplicates: counts[1]) : nil
    }

    /// Adds a batch; the row of its stream must exist.
    static func record(
        _ receipt: Receipt,
        of one: WaitingBatch,
        _ index: borrowing Connection
    )
        throws
    {
        let others = try entries(of: one.batch, index).filter { !$0.hasPrefix("\(one.key):") }
        let entry = "\(one.key):\(receipt.accepted):\(receipt.duplicates)"
        try index.run(
            "UPDATE streams SET recent=? WHERE device=? AND stream=?",
            (others + [entry]).suffix(maximum).joined(separator: " "),
            one.batch.device,
            one.batch.stream
        )
    }

    private static func entries(of batch: IncomingBatch, _ index: borrowing Connection) throws
        -> [String]
    {
        let sql = "SELECT recent FROM streams WHERE device=? AND stream=?"
        let row = try index.prepare(sql, batch.device, batch.stream)
        return try row.step() ? row.text(0).split(separator: " ").map(String.init) : []
    }
}
