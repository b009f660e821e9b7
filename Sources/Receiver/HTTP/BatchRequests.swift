// What a batch on its way in has to be, wherever it is kept.
import Dispatch

/// Judges requests with batches: by their header, then by their body.
struct BatchRequests: Sendable {
    /// What inflating and checking costs in memory, it costs so many times at most; storing costs little.
    private let checking = DispatchSemaphore(value: 2)
    /// Bytes of a body on the wire.
    let maxBody: Int
    let spoolFolder: String

    init(maxBody: Int, spoolFolder: String) {
        self.maxBody = maxBody
        self.spoolFolder = spoolFolder
    }

    /// Whether the body is wanted of a request whose token is good.
    func plan(_ head: RequestHead, _ log: ServerLog) -> RequestPlan {
        do {
            try check(head)
            return .body(limit: maxBody, isKnown: true)
        } catch {
            return .answer(log.refused(error), isKnown: true)
        }
    }

    private func check(_ head: RequestHead) throws {
        _ = try key(head)
        guard head.fields[.contentType]?.lowercased().hasPrefix("application/json") == true else {
            throw HTTPRefusal(status: 415, reason: "Content-Type must be application/json")
        }
        guard head.isChunked || head.length != nil else {
            throw HTTPRefusal(
                status: 411,
                reason: "a body needs Content-Length or Transfer-Encoding"
            )
        }
        try Inflater.check(head.fields[.contentEncoding] ?? "")
        guard head.length ?? 0 <= maxBody else { throw HTTPRefusal.tooLarge(maxBody) }
    }

    /// A structured-field string (RFC 8941, section 3.3.3): quoted, plain characters only.
    func key(_ head: RequestHead) throws -> String {
        let text = head.fields[.idempotencyKey] ?? ""
        let key = String(text.dropFirst().dropLast())
        guard text.count > 2, text.hasPrefix("\""), text.hasSuffix("\""), isName(key) else {
            throw HTTPRefusal(status: 400, reason: "Idempotency-Key is missing or not a quoted key")
        }
        return key
    }

    /// The body as it was before compression, and the batch that it is; throws an HTTPRefusal.
    ///
    /// `device`: whose token it came with, "" for any.
    func checked(
        _ head: RequestHead,
        _ wire: Spool,
        from device: String
    ) throws -> (Spool, IncomingBatch) {
        checking.wait()
        defer { checking.signal() }
        let encoding = head.fields[.contentEncoding] ?? ""
        let limit = WorkLimit.checking
        let body = try Inflater.inflate(
            wire,
            encoding: encoding,
            folder: spoolFolder,
            limit: limit
        )
        let batch = try body.withView { try IncomingBatch(checking: $0, limit: limit) }
        guard device.isEmpty || device == batch.device else {
            throw HTTPRefusal(status: 403, reason: "the token belongs to another device_id")
        }
        return (body, batch)
    }
}

extension HTTPAnswer {
    /// To a device that asks whether its token is good; `device`: whose that is, "" for any.
    init(verified device: String) {
        self.init(200, device.isEmpty ? ["ok": true] : ["ok": true, "device_id": device])
    }

    /// To who asks whether the server is well; `more`: what it tells besides.
    init(health totals: Archive.Totals, version: String, more: [String: Any] = [:]) {
        let facts: [String: Any] = [
            "ok": true, "version": version, "records": totals.records, "batches": totals.batches,
        ]
        self.init(200, facts.merging(more) { $1 })
    }

    /// To a batch that is stored.
    init(_ receipt: Receipt, key: String) {
        self.init(
            200,
            [
                "accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": 0,
                "batch_id": key,
            ]
        )
    }
}

extension ServerLog {
    /// The answer to a request that was refused, and a line about it.
    func refused(_ error: any Error) -> HTTPAnswer {
        guard let refusal = error as? HTTPRefusal else {
            write("error: \(error)")
            return HTTPAnswer(HTTPRefusal(status: 500, reason: "\(error)"))
        }
        write("refused \(refusal.status): \(refusal.reason)")
        return HTTPAnswer(refusal)
    }

    /// A line about a batch that is stored.
    func stored(
        _ batch: IncomingBatch,
        _ receipt: Receipt,
        bytes: Int,
        since start: ContinuousClock.Instant
    ) {
        let milliseconds = Int((ContinuousClock.now - start) / .milliseconds(1))
        write(
            "\(batch.device) \(batch.stream): \(receipt.accepted) records, \(receipt.duplicates) duplicates, \(bytes) bytes, \(milliseconds) ms"
        )
    }
}
