// What `waypost quarantine` asks for, answered by the daemon or, with the daemon dead, on the database itself.
internal import Board
internal import FoundationEssentials
internal import Host
internal import Queue
internal import Streams

/// A request of `waypost quarantine`.
package enum QuarantineRequest: Sendable, Equatable {
    /// A page of batches: those numbered above `after`.
    case list(after: Int64)
    /// `id`: a batch's number or key, or `all`.
    case requeue(id: String)
    case drop(id: String)

    private struct Wire: Codable {
        var command: String
        var action: String
        var after: Int64?
        var id: String?
    }

    /// nil for any other line.
    init?(line: [UInt8]) {
        guard let wire = try? JSONInput.decode(Wire.self, from: line),
            wire.command == "quarantine"
        else { return nil }
        switch (wire.action, wire.id) {
        case ("list", _): self = .list(after: max(0, wire.after ?? 0))
        case ("requeue", let id?): self = .requeue(id: id)
        case ("drop", let id?): self = .drop(id: id)
        default: return nil
        }
    }

    /// One line of JSON with its end.
    var line: [UInt8] {
        let wire =
            switch self {
            case .list(let after): Wire(command: "quarantine", action: "list", after: after)
            case .requeue(let id): Wire(command: "quarantine", action: "requeue", id: id)
            case .drop(let id): Wire(command: "quarantine", action: "drop", id: id)
            }
        return ((try? JSONEncoder().encode(wire)).map { Array($0) } ?? []) + [10]
    }
}

/// The answer to a request; on the control socket one line of JSON.
package struct QuarantineReply: Codable, Sendable, Equatable {
    /// A batch in quarantine.
    package struct Entry: Codable, Sendable, Equatable {
        package var number: Int64
        package var key: String
        package var stream: String
        package var records: Int
        /// RFC 3339.
        package var quarantinedAt: String
        package var attempts: Int
        /// The server's words.
        package var words: String
        package var firstId: String
    }

    package var batches: [Entry] = []
    /// There are more batches than these.
    package var more = false
    /// What was requeued or dropped.
    package var changedBatches = 0
    package var changedRecords = 0
    /// Why it was not done.
    @OrNull package var error: String?

    init(error: String? = nil) {
        self.error = error
    }

    init?(json: [UInt8]) {
        guard let reply = try? JSONInput.decode(Self.self, from: json, snakeCase: true) else {
            return nil
        }
        self = reply
    }

    var json: [UInt8] { encodedJSON(self) }
}

/// One line of JSON, its keys in snake case and in order.
func encodedJSON(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { Array($0) } ?? Array("{}".utf8)
}

/// Does on a queue what was asked for.
struct QuarantineDesk: Sendable {
    /// Batches of one reply: it must fit into the socket's buffer, for nobody waits for a slow reader.
    static let pageSize: Int64 = 50

    let queue: Queue
    let configuration: Configuration

    func answer(_ request: QuarantineRequest) -> QuarantineReply {
        do {
            switch request {
            case .list(let after): return try list(after: after)
            case .requeue("all"): return try requeueAll()
            case .requeue(let id): return try change(id) { try $0.requeue($1) != nil }
            case .drop(let id): return try change(id) { try $0.drop($1) }
            }
        } catch {
            return QuarantineReply(error: "the quarantine could not be changed: \(error)")
        }
    }

    private func list(after number: Int64) throws -> QuarantineReply {
        let found = try queue.perform {
            try $0.quarantine(after: number, limit: Self.pageSize + 1)
        }
        var reply = QuarantineReply()
        reply.more = found.count > Int(Self.pageSize)
        reply.batches = found.prefix(Int(Self.pageSize)).map { found in
            QuarantineReply.Entry(
                number: found.batch.id,
                key: found.batch.key,
                stream: configuration.wire(of: found.batch.stream),
                records: found.batch.records,
                quarantinedAt: found.at.rfc3339,
                attempts: found.batch.attempts,
                words: String((found.batch.error ?? "").prefix(400)),
                firstId: found.firstID
            )
        }
        return reply
    }

    private func change(
        _ id: String,
        _ body: @escaping @Sendable (Writer, Batch) throws -> Bool
    ) throws -> QuarantineReply {
        let records = try queue.perform { writer -> Int? in
            let batch =
                if let number = Int64(id) { try writer.quarantined(number: number) } else {
                    try writer.quarantined(key: id.lowercased())
                }
            guard let batch, try body(writer, batch) else { return nil }
            return batch.records
        }
        guard let records else {
            return QuarantineReply(
                error:
                    "no batch \(id.prefix(40)) in quarantine; `waypost quarantine list` shows them"
            )
        }
        var reply = QuarantineReply()
        reply.changedBatches = 1
        reply.changedRecords = records
        return reply
    }

    /// In steps, so that collecting is not held up.
    private func requeueAll() throws -> QuarantineReply {
        var reply = QuarantineReply()
        while true {
            let records = try queue.perform { writer in
                try writer.quarantine(limit: 500).map { try writer.requeue($0.batch)?.records ?? 0 }
            }
            guard !records.isEmpty else { return reply }
            reply.changedBatches += records.count
            reply.changedRecords += records.reduce(0, +)
        }
    }
}

/// The command's side: the daemon if it runs, else the database under the daemon's own lock.
package struct QuarantineClient {
    private let configuration: Configuration
    private let version: String

    package init(_ configuration: Configuration, version: String) {
        self.configuration = configuration
        self.version = version
    }

    /// All batches in quarantine, oldest first.
    ///
    /// Throws a Failure that says what to do.
    package func list() throws -> [QuarantineReply.Entry] {
        try withDesk { ask in
            var all: [QuarantineReply.Entry] = []
            var isMore = true
            while isMore {
                let page = try ask(.list(after: all.last?.number ?? 0))
                all += page.batches
                isMore = page.more && !page.batches.isEmpty
            }
            return all
        }
    }

    /// Requeues or drops; throws a Failure when there is no such batch.
    package func perform(_ request: QuarantineRequest) throws -> QuarantineReply {
        try withDesk { try $0(request) }
    }

    private func withDesk<Value>(
        _ body: ((QuarantineRequest) throws -> QuarantineReply) throws -> Value
    ) throws -> Value {
        let path = Gateway.socketPath(configuration)
        if let client = ControlClient(path: path) {
            return try body { request in
                guard client.send(line: request.line),
                    let line = client.line(timeout: .seconds(60)),
                    let reply = QuarantineReply(json: line)
                else {
                    throw Failure("\(path): the daemon did not answer; `waypost status` shows it")
                }
                return try Self.checked(reply)
            }
        }
        return try OfflineQueue.open(configuration, version: version) { queue in
            let desk = QuarantineDesk(queue: queue, configuration: configuration)
            return try body { try Self.checked(desk.answer($0)) }
        }
    }

    private static func checked(_ reply: QuarantineReply) throws -> QuarantineReply {
        if let error = reply.error { throw Failure(error) }
        return reply
    }
}
