// Handles the requests of `waypost quarantine`: list, requeue and drop batches.
import Host
import Queue
import Records
import Setup

/// A page of the list of quarantined batches.
package struct QuarantinePage: Codable, Sendable, Equatable {
    /// A batch in quarantine.
    package struct Entry: Codable, Sendable, Equatable {
        package var number: Int64
        package var key: String
        package var stream: String
        package var records: Int
        /// RFC 3339.
        package var quarantinedAt: String
        package var attempts: Int
        /// The server's message.
        package var message: String
        package var firstId: String
    }

    /// The number of batches on one page.
    static let size: Int64 = 50

    package var batches: [Entry] = []
    /// Whether there are more batches after this page.
    package var more = false

    init() {}

    /// Reads the batches with numbers above `number`.
    init(_ reader: Reader, _ number: Int64, _ configuration: Configuration) throws {
        let found = try reader.quarantine(after: number, limit: Self.size + 1)
        more = found.count > Int(Self.size)
        batches = found.prefix(Int(Self.size)).map { found in
            Entry(
                number: found.batch.id,
                key: found.batch.key,
                stream: reader.wire(of: found.batch.stream)
                    ?? configuration.wire(of: found.batch.stream),
                records: found.batch.records,
                quarantinedAt: found.at.rfc3339,
                attempts: found.batch.attempts,
                message: String((found.batch.error ?? "").prefix(400)),
                firstId: found.firstID
            )
        }
    }
}

/// The number of batches and records that were requeued or dropped, or will be sent again.
package struct QuarantineChange: Codable, Sendable, Equatable {
    package var batches = 0
    package var records = 0
    /// For a resend: the most records uploaded in its time that are no longer on the device; nil for
    /// none.
    package var gone: Int?
}

/// Requeues and drops batches; waits for the writer.
struct QuarantineHandler: Sendable {
    let queue: Queue

    /// Requeues a batch by its number or key, or all with `all`.
    func requeue(_ id: String) throws -> QuarantineChange {
        id == "all" ? try requeueAll() : try change(id) { try $0.requeue($1) != nil }
    }

    /// Drops a batch by its number or key.
    func drop(_ id: String) throws -> QuarantineChange { try change(id) { try $0.drop($1) } }

    private func change(
        _ id: String,
        _ body: @escaping @Sendable (Writer, Batch) throws -> Bool
    ) throws -> QuarantineChange {
        let records = try queue.perform { writer -> Int? in
            let batch =
                if let number = Int64(id) { try writer.quarantined(number: number) } else {
                    try writer.quarantined(key: id.lowercased())
                }
            guard let batch, try body(writer, batch) else { return nil }
            return batch.records
        }
        guard let records else {
            throw Failure(
                "no batch \(id.prefix(40)) in quarantine; `waypost quarantine list` shows them"
            )
        }
        return QuarantineChange(batches: 1, records: records)
    }

    /// Requeues all batches in steps, so that collecting is not delayed.
    private func requeueAll() throws -> QuarantineChange {
        var change = QuarantineChange()
        while true {
            let records = try queue.perform { writer in
                try writer.quarantined(limit: 500).map { try writer.requeue($0)?.records ?? 0 }
            }
            guard !records.isEmpty else { return change }
            change.batches += records.count
            change.records += records.reduce(0, +)
        }
    }
}
